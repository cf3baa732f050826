/**
 * Pieces of a body as one.
 *
 * @param size the sum of their lengths
 */
export function joinBytes(parts: readonly Uint8Array[], size: number): Uint8Array {
  const [only] = parts
  if (only !== undefined && parts.length === 1) return only
  const bytes = new Uint8Array(size)
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.byteLength
  }
  return bytes
}
