import { stripVTControlCharacters } from 'node:util'

/** Rows in columns; colours do not count as width. */
export function table(head: string[], rows: string[][]): string {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((row) => widthOf(row[column] ?? ''))))
  return all.map((row) => `${lineOf(row, widths)}\n`).join('')
}

function lineOf(row: string[], widths: number[]): string {
  return row
    .map((cell, column) => cell + ' '.repeat(Math.max(0, (widths[column] ?? 0) - widthOf(cell))))
    .join('  ')
    .trimEnd()
}

function widthOf(cell: string): number {
  return stripVTControlCharacters(cell).length
}
