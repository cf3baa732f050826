/** Neon's pooler is the endpoint's host with `-pooler` after the endpoint's id. */
const pooledHost = /^(ep-[a-z0-9-]+)-pooler(\..+)$/

/**
 * The direct (unpooled) form of a Neon connection string, for LISTEN and session locks, which Neon's
 * pooler (PgBouncer in transaction mode) does not carry. Any other URL comes back as it is.
 */
export function directNeonUrl(url: string): string {
  const { hostname } = parse(url)
  const match = pooledHost.exec(hostname)
  return match === null ? url : url.replace(hostname, `${match[1]}${match[2]}`)
}

function parse(url: string): { hostname: string } {
  try {
    return new URL(url)
  } catch {
    return { hostname: '' }
  }
}
