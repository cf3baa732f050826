import type { Io } from '../io.ts'
import { printable } from '../printable.ts'
import { createStyle, type Style } from '../style.ts'
import { table } from '../table.ts'

/** The option that every command has which prints something. */
export interface JsonFlag {
  json?: boolean
}

/** Prints a result: as JSON where that is asked for, else a line with a tick. */
export function done(io: Io, flags: JsonFlag, result: object, line: (style: Style) => string): void {
  const style = createStyle(io.stdout, io.env)
  io.stdout.write(
    flags.json === true ? `${JSON.stringify(result)}\n` : `${style.green('✓')} ${line(style)}\n`,
  )
}

/** How a list is shown. */
export interface Listing<Item> {
  /** A page of it, given the cursor of the last one. */
  page(cursor: string | undefined): Promise<{ items: readonly Item[]; next: string | number | null }>
  head: string[]
  row(item: Item, style: Style): string[]
  /** Said on stderr where there are none. */
  none: string
}

/** Prints all pages of a list: a table, or each as a line of JSON. */
export async function printAll<Item extends object>(
  io: Io,
  flags: JsonFlag,
  { page, head, row, none }: Listing<Item>,
): Promise<void> {
  const style = createStyle(io.stdout, io.env)
  const rows: string[][] = []
  let cursor: string | undefined
  do {
    const { items, next } = await page(cursor)
    for (const item of items) {
      if (flags.json === true) io.stdout.write(`${JSON.stringify(item)}\n`)
      else rows.push(row(item, style))
    }
    cursor = next === null ? undefined : String(next)
  } while (cursor !== undefined)
  if (flags.json === true) return
  if (rows.length === 0) io.stderr.write(`${none}\n`)
  else io.stdout.write(table(head.map(style.bold), rows))
}

/** The facts of one thing, a line each. */
export function printFacts(io: Io, flags: JsonFlag, facts: object): void {
  if (flags.json === true) {
    io.stdout.write(`${JSON.stringify(facts)}\n`)
    return
  }
  const entries = Object.entries(facts)
  const width = Math.max(...entries.map(([name]) => name.length))
  for (const [name, value] of entries) io.stdout.write(`${name.padEnd(width)}  ${printable(plain(value))}\n`)
}

/** A number, yellow or red where it is something to look at. */
export function count(value: number, paint: (text: string) => string): string {
  return value > 0 ? paint(String(value)) : '0'
}

/** `1 message`, `2 messages`. */
export function counted(value: number, noun: string): string {
  return `${value} ${noun}${value === 1 ? '' : 's'}`
}

/** A value as a cell. */
export function plain(value: unknown): string {
  if (value === null || value === undefined) return '–'
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
