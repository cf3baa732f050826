/** What a ring is signed over. */
export interface SignedRing {
  /** Told apart from other rings by it; 1 to 64 letters, digits, `-` and `_`. */
  id: string
  /** Seconds since 1970. */
  timestamp: number
  /** The body, as sent. May be empty. */
  body: string
}

/** The headers of a ring. */
export const ringHeaders = {
  id: 'millrace-ring-id',
  timestamp: 'millrace-ring-timestamp',
  signature: 'millrace-ring-signature',
} as const

/** Signs rings and checks them, with the secret that both ends share. */
export interface RingSigner {
  /** `v1=` and the HMAC-SHA256 in hex. */
  sign(ring: SignedRing): Promise<string>
  /** Compares without an early exit: the time tells nothing about the right signature. */
  verify(ring: SignedRing, signature: string): Promise<boolean>
}

const algorithm = { name: 'HMAC', hash: 'SHA-256' } as const

/** @param secret MILLRACE_DOORBELL_SECRET */
export function createRingSigner(secret: string): RingSigner {
  // made with the first use: at the edge a promise belongs to a request, and the next may not await it
  let known: CryptoKey | undefined
  async function key(): Promise<CryptoKey> {
    known ??= await crypto.subtle.importKey('raw', bytesOf(secret), algorithm, false, ['sign', 'verify'])
    return known
  }
  return {
    async sign(ring) {
      const mac = await crypto.subtle.sign('HMAC', await key(), signedContent(ring))
      return `v1=${toHex(new Uint8Array(mac))}`
    },
    async verify(ring, signature) {
      const mac = fromHex(/^v1=([0-9a-f]{64})$/.exec(signature)?.[1])
      return mac !== null && crypto.subtle.verify('HMAC', await key(), mac, signedContent(ring))
    },
  }
}

/** The prefix keeps what is signed here from ever being a signature of something else. */
function signedContent({ id, timestamp, body }: SignedRing): Uint8Array<ArrayBuffer> {
  return bytesOf(`millrace-ring.v1.${id}.${timestamp}.${body}`)
}

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text)
}

function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function fromHex(hex: string | undefined): Uint8Array<ArrayBuffer> | null {
  if (hex === undefined) return null
  return Uint8Array.from({ length: hex.length / 2 }, (_, at) =>
    Number.parseInt(hex.slice(at * 2, at * 2 + 2), 16),
  )
}
