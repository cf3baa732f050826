import { lookup, Resolver } from 'node:dns/promises'

/** An address that a name resolves to. */
export interface ResolvedAddress {
  address: string
  family: 4 | 6
}

/** All addresses of a name. Rejects when there is none. */
export type ResolveName = (hostname: string) => Promise<ResolvedAddress[]>

/** One lost packet is made good within the shortest sensible time-out of a webhook. */
const queryLimits = { timeout: 2500, tries: 2 }

/** Definite answers: the server knows no such name, or no server is set up. */
const definite = new Set(['ENOTFOUND', 'ENODATA', 'ECONNREFUSED'])

/** The system's resolver: also knows the hosts file, mDNS, and names of containers. */
export const resolveBySystem: ResolveName = async (hostname) =>
  toAddresses(await lookup(hostname, { all: true }))

/**
 * Resolves over DNS itself. The system's `getaddrinfo` blocks a thread of a small pool, so
 * that a few names with dead name servers would hold up every other webhook. It is asked
 * only after a definite "no such name", for what stands in the hosts file.
 */
export function createDnsResolver(
  resolver: Pick<Resolver, 'resolve4' | 'resolve6'> = new Resolver(queryLimits),
  fallback: ResolveName = resolveBySystem,
): ResolveName {
  return async (hostname) => {
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
    const addresses = [...tagged(v4, 4), ...tagged(v6, 6)]
    if (addresses.length > 0) return addresses
    const failures = [v4, v6].flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
    const unsure = failures.find((error) => !definite.has(error.code))
    if (unsure !== undefined) throw unsure
    return fallback(hostname)
  }
}

function tagged(result: PromiseSettledResult<string[]>, family: 4 | 6): ResolvedAddress[] {
  return result.status === 'fulfilled' ? result.value.map((address) => ({ address, family })) : []
}

function toAddresses(found: { address: string; family: number }[]): ResolvedAddress[] {
  return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }))
}
