/** `URL.parse`, which the first releases of Node 20 lack. */
export function parseUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined
}
