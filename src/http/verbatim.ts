import type { Context } from 'hono'

/** An object as JSON text whose last member, `data`, goes out byte for byte as it was sent. */
export function withData({ dataText, ...rest }: { dataText: string }): string {
  const text = JSON.stringify(rest)
  return `${text.slice(0, -1)}${text === '{}' ? '' : ','}"data":${dataText}}`
}

/** JSON text as the answer. */
export function jsonText(c: Context, text: string): Response {
  return c.body(text, 200, { 'content-type': 'application/json' })
}
