/**
 * IPv4 ranges that are not the public internet.
 * Source: IANA IPv4 Special-Purpose Address Registry, and what clouds put elsewhere.
 */
export const forbiddenIpv4 = [
  '0.0.0.0/8', // this network; Linux connects 0.0.0.0 to itself
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carrier-grade NAT; Alibaba's metadata is in it
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // Azure's host agent: looks public, and is reached from every Azure VM
  '169.254.0.0/16', // link-local; cloud metadata
  '172.16.0.0/12', // private
  '192.0.0.0/24', // IETF protocol assignments; Oracle's metadata is in it
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // 6to4 relays, deprecated
  '192.168.0.0/16', // private
  '198.18.0.0/15', // benchmarking
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved; broadcast
] as const

/**
 * The only block of IPv6 that is handed out for the public internet. All that embeds an
 * IPv4 address below it (mapped, translated, compatible, NAT64), loopback, unique and
 * link local, site-local, discard-only, SRv6 and multicast lie outside.
 * Source: IANA Internet Protocol Version 6 Address Space.
 */
export const publicIpv6 = '2000::/3'

/**
 * What is not public inside {@link publicIpv6}.
 * Source: IANA IPv6 Special-Purpose Address Registry.
 */
export const forbiddenIpv6 = [
  '2001::/23', // IETF protocol assignments; Teredo and ORCHID among them
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4: any IPv4 address, private ones too
  '3fff::/20', // documentation
] as const

/** Names that reach the machine itself, its network or its cloud, whatever they resolve to. */
export const forbiddenNames = [
  'localhost',
  'localdomain',
  'local', // mDNS; cluster.local too
  'internal', // reserved for private use by ICANN; clouds' metadata
  'home.arpa',
  'lan',
  'intranet',
  'corp',
  'home',
  'private',
  'svc', // Kubernetes services
  'metadata.goog', // Google's metadata under a public-looking name
  'metadata.tencentyun.com',
  'metadata.packet.net',
  'metadata.platformequinix.com',
] as const

/**
 * Ports of other protocols, whose servers might take a request for their own. `fetch` refuses them too, so
 * that such a target would not work at the edge.
 * Source: WHATWG Fetch, "port blocking".
 */
export const badPorts: ReadonlySet<number> = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
  109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515,
  526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049,
  3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
])
