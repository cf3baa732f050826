import type { TextOutput } from './io.ts'

/** Colours for one output; where it shows none, texts come back as they are. */
export interface Style {
  bold(text: string): string
  dim(text: string): string
  red(text: string): string
  green(text: string): string
  yellow(text: string): string
  cyan(text: string): string
}

/** Colours are for people: on a terminal, and not when NO_COLOR (https://no-color.org) asks for none. */
export function hasColors(output: TextOutput, env: Record<string, string | undefined>): boolean {
  return output.isTTY && !env.NO_COLOR && env.TERM !== 'dumb'
}

export function createStyle(output: TextOutput, env: Record<string, string | undefined>): Style {
  const coloured = hasColors(output, env)
  const paint = (open: number, close: number) => (text: string) =>
    coloured && text !== '' ? `\u001b[${open}m${text}\u001b[${close}m` : text
  return {
    bold: paint(1, 22),
    dim: paint(2, 22),
    red: paint(31, 39),
    green: paint(32, 39),
    yellow: paint(33, 39),
    cyan: paint(36, 39),
  }
}
