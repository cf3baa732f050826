/** Headers as a receiver has them: the web's `Headers`, or a plain object (Node's `req.headers`). */
export type HeadersLike =
  | { get(name: string): string | null }
  | { readonly [name: string]: string | readonly string[] | undefined }

/**
 * One header's value, or null when it is missing. The name is in lower case. A header
 * that stands there twice reads as missing: which of the two was meant is a guess.
 */
export function readHeader(headers: HeadersLike, name: string): string | null {
  if (isHeaders(headers)) return headers.get(name)
  const values = Object.entries(headers)
    .filter(([key]) => key.toLowerCase() === name)
    .flatMap(([, value]) => value ?? [])
  return values.length === 1 ? (values[0] ?? null) : null
}

function isHeaders(headers: HeadersLike): headers is { get(name: string): string | null } {
  return typeof headers.get === 'function'
}
