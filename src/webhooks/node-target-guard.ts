import type { LookupFunction } from 'node:net'
import { buildConnector } from 'undici'
import { createDnsResolver, resolveBySystem, type ResolvedAddress, type ResolveName } from './node-resolve.ts'
import { addressOfHost, isPublicAddress, type TargetPolicy } from './target-url.ts'

/** An error of the guard; `code` says which rule, and nothing in it tells what a name resolved to. */
export interface TargetGuardError extends Error {
  code: 'TARGET_FORBIDDEN' | 'DNS_FAILED'
}

export interface TargetGuardOptions {
  policy: TargetPolicy
  /** Defaults to DNS, or to the system's resolver where the policy allows insecure targets. */
  resolve?: ResolveName
}

/**
 * A `lookup` for sockets that hands out addresses only when every address of the name
 * is allowed. The socket connects to exactly what comes back, so a name that changes its
 * answer between checks (DNS rebinding) gains nothing.
 */
export function createGuardedLookup({ policy, resolve }: TargetGuardOptions): LookupFunction {
  const resolveName = resolve ?? (policy.allowInsecure === true ? resolveBySystem : createDnsResolver())
  return (hostname, options, callback) => {
    resolveAllowed(hostname, resolveName, policy).then(
      (addresses) => {
        const wanted = ofFamily(addresses, options.family)
        const [first] = wanted
        if (first === undefined) return callback(guardError('DNS_FAILED', `${hostname} has no address`), [])
        if (options.all === true) return callback(null, wanted)
        return callback(null, first.address, first.family)
      },
      (error: TargetGuardError) => callback(error, []),
    )
  }
}

/**
 * A connector for undici's Agent (`connect`) that refuses forbidden addresses: those a
 * name resolves to, and those that stand in the URL themselves, for which a socket
 * never asks `lookup`.
 */
export function createGuardedConnector(
  options: TargetGuardOptions & { connectTimeoutMs: number; http2?: boolean },
): buildConnector.connector {
  const lookup = createGuardedLookup(options)
  const { connectTimeoutMs: timeout, http2: allowH2 = false } = options
  const connect = buildConnector({ lookup, timeout, allowH2 })
  return (target, callback) => {
    const address = addressOfHost(target.hostname)
    if (address !== null && !isPublicAddress(address, options.policy)) {
      callback(guardError('TARGET_FORBIDDEN', `${target.hostname} is not a public address`), null)
      return
    }
    connect(target, callback)
  }
}

async function resolveAllowed(
  hostname: string,
  resolve: ResolveName,
  policy: TargetPolicy,
): Promise<ResolvedAddress[]> {
  const addresses = await resolve(hostname).catch((cause: unknown) => {
    const code = (cause as { code?: unknown } | null)?.code
    throw guardError('DNS_FAILED', `${hostname} cannot be resolved (${String(code ?? 'no answer')})`, cause)
  })
  if (addresses.every(({ address }) => isPublicAddress(address, policy))) return addresses
  throw guardError('TARGET_FORBIDDEN', `${hostname} resolves to an address that is not public`)
}

function ofFamily(addresses: ResolvedAddress[], family: unknown): ResolvedAddress[] {
  const wanted = family === 4 || family === 'IPv4' ? 4 : family === 6 || family === 'IPv6' ? 6 : null
  return wanted === null ? addresses : addresses.filter((one) => one.family === wanted)
}

function guardError(code: TargetGuardError['code'], message: string, cause?: unknown): TargetGuardError {
  return Object.assign(new Error(message, cause === undefined ? undefined : { cause }), { code })
}
