import ipaddr from 'ipaddr.js'
import { MillraceError } from '../errors/millrace-error.ts'
import { parseAddress, type TargetPolicy } from './target-url.ts'

const setting = 'MILLRACE_ALLOWED_TARGETS'

/**
 * Reads a list of private ranges that webhooks may reach all the same, such as `10.0.0.0/8,fd00::/8`.
 * Strict, since a typing error would open a network or shut a customer out.
 *
 * @throws INVALID_SETTING, naming the range and what is wrong with it
 */
export function parseAllowedTargets(text: string): string[] {
  return text.split(',').map((entry) => {
    const range = entry.trim()
    const problem = problemOf(range)
    if (problem === null) return range
    const message = `${setting} holds ${JSON.stringify(range)}, which ${problem}`
    throw new MillraceError('INVALID_SETTING', message, { details: { setting } })
  })
}

/** Which targets the settings allow. */
export function targetPolicyOf(settings: {
  allowInsecureTargets: boolean
  allowedTargets: readonly string[]
}): TargetPolicy {
  return { allowInsecure: settings.allowInsecureTargets, allowedCidrs: settings.allowedTargets }
}

function problemOf(range: string): string | null {
  const [address = '', bits, ...more] = range.split('/')
  const base = parseAddress(address)
  if (base === null || more.length > 0) return 'is no range such as 10.0.0.0/8 or fd00::/8'
  const most = base.kind() === 'ipv4' ? 32 : 128
  if (bits === undefined) return `lacks its length: write ${address}/${most} for one address`
  if (!/^(0|[1-9]\d{0,2})$/.test(bits) || Number(bits) > most) return `must end in a length from 0 to ${most}`
  const first = networkOf(`${address}/${bits}`, base.kind())
  if (first.toString() !== base.toString())
    return `has bits beyond its length: ${first.toString()}/${bits} may be meant`
  return null
}

function networkOf(range: string, kind: 'ipv4' | 'ipv6'): ipaddr.IPv4 | ipaddr.IPv6 {
  return kind === 'ipv4'
    ? ipaddr.IPv4.networkAddressFromCIDR(range)
    : ipaddr.IPv6.networkAddressFromCIDR(range)
}
