import { MillraceError } from '../errors/millrace-error.ts'
import type { Clock, Ports } from '../ports.ts'
import { formatRing, type Ring } from './ring.ts'
import { createRingSigner, ringHeaders } from './ring-signature.ts'

/** What {@link ringDoorbell} takes. */
export interface RingOptions {
  /** MILLRACE_DOORBELL_URL: the forwarder's address, `/doorbell` where it names no path. */
  url: string
  /** MILLRACE_DOORBELL_SECRET, the same at both ends. */
  secret: string
  ports: Pick<Ports, 'clock' | 'fetch'>
  ring: Ring
  /** How long the forwarder may take to answer. Default 3000. */
  timeoutMs?: number
  signal?: AbortSignal
}

/** What the forwarder answered. */
export interface RingAnswer {
  /** 202: it has heard; 401: not signed with its secret, or its clock is far from this one; 409: not new. */
  status: number
  /** How it was as the bell rang: `sleeping`, `listening`, `polling` …; null unless it has heard. */
  mode: string | null
}

/** An answer that is longer than this is none of a doorbell's. */
const mostAnswerChars = 1024

/**
 * Rings a forwarder's doorbell. Each call is a ring of its own, with a fresh id.
 *
 * @throws SERVER_UNREACHABLE when no answer comes in time, ABORTED
 */
export async function ringDoorbell(options: RingOptions): Promise<RingAnswer> {
  const { clock, fetch } = options.ports
  const body = formatRing(options.ring)
  const timestamp = Math.floor(clock.now() / 1000)
  const id = crypto.randomUUID()
  const signature = await createRingSigner(options.secret).sign({ id, timestamp, body })
  const headers = {
    'content-type': 'application/json',
    [ringHeaders.id]: id,
    [ringHeaders.timestamp]: String(timestamp),
    [ringHeaders.signature]: signature,
  }
  const bound = startBound(clock, options.timeoutMs ?? 3_000, options.signal)
  try {
    // a redirect would carry a signed ring to another address
    const init: RequestInit = { method: 'POST', headers, body, redirect: 'manual', signal: bound.signal }
    const response = await fetch(doorbellUrl(options.url), init)
    return { status: response.status, mode: modeIn((await response.text()).slice(0, mostAnswerChars)) }
  } catch (error) {
    if (options.signal?.aborted) throw new MillraceError('ABORTED', 'the ring was given up', { cause: error })
    throw new MillraceError('SERVER_UNREACHABLE', 'the doorbell gives no answer', { cause: error })
  } finally {
    bound.clear()
  }
}

/** The address of the doorbell: a bare host means its usual path. */
export function doorbellUrl(url: string): string {
  const full = new URL(url)
  if (full.pathname === '/') full.pathname = '/doorbell'
  return full.href
}

function modeIn(answer: string): string | null {
  try {
    const { mode } = JSON.parse(answer) as { mode?: unknown }
    return typeof mode === 'string' && /^[a-z]{1,20}$/.test(mode) ? mode : null
  } catch {
    return null
  }
}

function startBound(clock: Clock, ms: number, outer: AbortSignal | undefined) {
  const controller = new AbortController()
  const abort = (): void => controller.abort()
  const timer = clock.setTimeout(abort, ms)
  outer?.addEventListener('abort', abort)
  if (outer?.aborted) abort()
  return {
    signal: controller.signal,
    clear() {
      clock.clearTimeout(timer)
      outer?.removeEventListener('abort', abort)
    },
  }
}
