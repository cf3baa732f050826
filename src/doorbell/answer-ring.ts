import type { Clock } from '../ports.ts'
import { createCoalescer } from './coalesce.ts'
import { createRememberedRings } from './remembered-rings.ts'
import { createRingSigner, ringHeaders, type RingSigner, type SignedRing } from './ring-signature.ts'
import { parseRing, type Ring } from './ring.ts'

/** How far the two clocks may be apart, and how long a ring may be on its way. */
export const toleranceS = 300
/** Some 33 rings a second for as long as the tolerance; at more, the older ones are refused. */
const mostRemembered = 10_000
/** Room for a hundred streams. */
const mostBodyBytes = 4_096
/** A crowd of rings is looked into ten times a second. */
const gapMs = 100

/** What {@link createDoorbell} takes. */
export interface DoorbellOptions {
  /** MILLRACE_DOORBELL_SECRET. */
  secret: string
  clock: Clock
  /** Called with the streams that were named, at most ten times a second. */
  onRing: (streamIds: Ring['streamIds']) => void
  /** How the forwarder is, for the answer. */
  mode: () => string
}

/** The endpoint behind `POST /doorbell`. */
export interface Doorbell {
  /**
   * 202 `{mode}` when it rang; 401 without a fresh and right signature, 409 for one that has come before, both
   * without a reason, since whoever has the secret needs none; 400 and 413 for bodies that are no rings.
   */
  answer(request: Request): Promise<Response>
  close(): void
}

export function createDoorbell({ secret, clock, onRing, mode }: DoorbellOptions): Doorbell {
  const signer = createRingSigner(secret)
  const remembered = createRememberedRings({ toleranceS, most: mostRemembered })
  const coalescer = createCoalescer(clock, gapMs, onRing)
  return {
    async answer(request) {
      const body = await readShort(request)
      if (body === null) return say(413)
      const now = Math.floor(clock.now() / 1000)
      const signed = await authentic(request.headers, body, { signer, now })
      if (signed === null) return say(401)
      if (!remembered.take(signed.id, signed.timestamp, now)) return say(409)
      const ring = parseRing(body)
      if (ring === null) return say(400)
      const before = mode()
      coalescer.add(ring)
      return say(202, { mode: before })
    },
    close: coalescer.close,
  }
}

const words: Record<number, string> = {
  400: 'not a ring',
  401: 'not authorized',
  409: 'not new',
  413: 'too large',
}

function say(status: number, facts: object = { error: words[status] }): Response {
  return Response.json(facts, { status })
}

async function authentic(
  headers: Headers,
  body: string,
  { signer, now }: { signer: RingSigner; now: number },
): Promise<SignedRing | null> {
  const id = headers.get(ringHeaders.id) ?? ''
  const time = headers.get(ringHeaders.timestamp) ?? ''
  if (!/^[\w-]{1,64}$/.test(id) || !/^\d{1,12}$/.test(time)) return null
  const ring = { id, timestamp: Number(time), body }
  if (Math.abs(ring.timestamp - now) > toleranceS) return null
  return (await signer.verify(ring, headers.get(ringHeaders.signature) ?? '')) ? ring : null
}

/** The body as text; null when it is over the limit, which is noticed before it is held in memory. */
async function readShort(request: Request): Promise<string | null> {
  if (Number(request.headers.get('content-length') ?? 0) > mostBodyBytes) return null
  if (request.body === null) return ''
  const decoder = new TextDecoder()
  let [text, bytes] = ['', 0]
  for await (const chunk of request.body as unknown as AsyncIterable<Uint8Array>) {
    bytes += chunk.length
    // leaving the loop cancels the rest
    if (bytes > mostBodyBytes) return null
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}
