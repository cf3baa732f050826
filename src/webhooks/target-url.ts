import ipaddr from 'ipaddr.js'
import { MillraceError } from '../errors/millrace-error.ts'
import { badPorts, forbiddenIpv4, forbiddenIpv6, forbiddenNames, publicIpv6 } from './forbidden-addresses.ts'

/** What an installation lets its webhooks reach. By default: https, and public addresses only. */
export interface TargetPolicy {
  /** Also plain http, private addresses and internal names. For development. Defaults to false. */
  allowInsecure?: boolean
  /** Private ranges that may be reached all the same, such as `10.20.0.0/16`. Defaults to none. */
  allowedCidrs?: readonly string[]
}

/** The verdict on a target URL; `reason` is for whoever entered it. */
export type TargetCheck = { ok: true; url: URL } | { ok: false; reason: string }

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Range = [Address, number]

/** Longer than any real URL, short enough for every proxy and log. */
const maxUrlLength = 2048

/**
 * Checks the URL of a webhook by its spelling alone, at creation and before each send.
 * What a name resolves to is for the guard at connect time: see node-target-guard.ts.
 * Send to `url.href` of the verdict, never to the text that came in.
 * @throws INVALID_SETTING when the policy names a range that is none
 */
export function checkTargetUrl(text: string, policy: TargetPolicy): TargetCheck {
  const url = parse(text)
  const reason = url === null ? 'is not an absolute URL' : (problemOf(text, url) ?? reachProblem(url, policy))
  return url === null || reason !== null ? { ok: false, reason: reason ?? '' } : { ok: true, url }
}

/**
 * Whether an IP address may be connected to. Any spelling that is not a plain IPv4 or
 * IPv6 address is refused.
 * @throws INVALID_SETTING when the policy names a range that is none
 */
export function isPublicAddress(ip: string, policy: TargetPolicy): boolean {
  if (policy.allowInsecure === true) return true
  const address = parseAddress(ip)
  if (address === null) return false
  if ((policy.allowedCidrs ?? []).some((cidr) => isIn(address, parseAllowed(cidr)))) return true
  if (address.kind() === 'ipv4') return !ipv4Ranges.some((range) => isIn(address, range))
  return isIn(address, ipv6Public) && !ipv6Ranges.some((range) => isIn(address, range))
}

/** The address a URL's host is, without brackets, or null when the host is a name. */
export function addressOfHost(hostname: string): string | null {
  const bare = hostname.startsWith('[') && hostname.endsWith(']') ? hostname.slice(1, -1) : hostname
  return parseAddress(bare) === null ? null : bare
}

function parse(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null
}

/** What no policy allows. */
function problemOf(text: string, url: URL): string | null {
  if (text.length > maxUrlLength || url.href.length > maxUrlLength) {
    return `is longer than ${maxUrlLength} characters`
  }
  // the URL parser drops these in silence, or reads \ as /: then two readers see two hosts
  if (/[\s\\\p{Cc}]/u.test(text)) return 'contains white space, control characters or a backslash'
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must start with https://'
  if (url.username !== '' || url.password !== '') return 'must not contain credentials'
  if (text.includes('#')) return 'must not contain a fragment'
  return url.port === '0' ? 'must not name port 0' : null
}

/** What the policy may allow. */
function reachProblem(url: URL, policy: TargetPolicy): string | null {
  if (policy.allowInsecure === true) return null
  if (url.protocol !== 'https:') return 'must start with https://'
  if (badPorts.has(Number(url.port))) return `names port ${url.port}, which belongs to another protocol`
  const address = addressOfHost(url.hostname)
  if (address === null) return nameProblem(url.hostname)
  return isPublicAddress(address, policy) ? null : 'points at an address that is not public'
}

function nameProblem(name: string): string | null {
  const labels = name.split('.')
  if (labels.includes('')) return 'has a host with an empty label or a trailing dot'
  if (labels.length === 1) return 'has a host without a dot, which only a private network resolves'
  const forbidden = forbiddenNames.some((suffix) => name === suffix || name.endsWith(`.${suffix}`))
  return forbidden ? 'has a host name that is reserved for private use' : null
}

/** Plain spellings only: ipaddr.js also reads octal, hex and short forms, as some resolvers do. */
export function parseAddress(ip: string): Address | null {
  if (ipaddr.IPv4.isValidFourPartDecimal(ip)) return ipaddr.IPv4.parse(ip)
  return ip.includes(':') && ipaddr.IPv6.isValid(ip) ? ipaddr.IPv6.parse(ip) : null
}

function isIn(address: Address, [base, bits]: Range): boolean {
  return address.kind() === base.kind() && address.match(base, bits)
}

function parseAllowed(cidr: string): Range {
  const slash = cidr.indexOf('/')
  if (parseAddress(cidr.slice(0, slash)) !== null && ipaddr.isValidCIDR(cidr)) return ipaddr.parseCIDR(cidr)
  throw new MillraceError(
    'INVALID_SETTING',
    `allowedCidrs holds ${JSON.stringify(cidr)}, which is no range`,
    {
      details: { setting: 'allowedCidrs' },
    },
  )
}

const ipv4Ranges = forbiddenIpv4.map((cidr) => ipaddr.parseCIDR(cidr))
const ipv6Ranges = forbiddenIpv6.map((cidr) => ipaddr.parseCIDR(cidr))
const ipv6Public = ipaddr.parseCIDR(publicIpv6)
