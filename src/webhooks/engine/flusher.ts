import type { Clock, TimerHandle } from '../../ports.ts'
import type { Flushed, LaneFlush } from './flush-outcomes.ts'
import type { FlyingFlush } from './lane-flush.ts'
import type { Lane } from './lane.ts'

/** Writes the outcomes of all lanes together, one statement at a time. */
export interface Flusher {
  /** Flush within so many milliseconds; an earlier wish wins. */
  request(withinMs: number): void
  /** Ends the timers; what is not flushed by then is not. */
  close(): void
}

/** What {@link createFlusher} takes. */
export interface FlusherOptions {
  clock: Clock
  lanes: () => Iterable<Lane>
  /** Runs the statement; see flush-outcomes.ts. */
  flush(lanes: LaneFlush[]): Promise<Flushed>
  onError(error: unknown): void
  leaseMs: number
}

/** After a failed flush it is tried again so much later. */
const retryMs = 500
/** So many characters of answers and messages make a statement full: Neon's HTTP endpoint takes 10 MB. */
const fullFlush = 2_000_000

export function createFlusher(options: FlusherOptions): Flusher {
  const { clock } = options
  let timer: TimerHandle | null = null
  let dueAt = Infinity
  /** In how many milliseconds it was wished for then: the same wish made later cannot be earlier. */
  let dueWithin = Infinity
  let running = false
  let closed = false

  function request(withinMs: number): void {
    if (closed || withinMs >= dueWithin) return
    const at = clock.now() + withinMs
    if (at >= dueAt) return
    dueAt = at
    dueWithin = withinMs
    if (running) return
    if (timer !== null) clock.clearTimeout(timer)
    timer = clock.setTimeout(run, withinMs)
  }

  function run(): void {
    timer = null
    dueAt = dueWithin = Infinity
    running = true
    void flushOnce(options).then((again) => {
      running = false
      const wished = dueAt
      dueAt = dueWithin = Infinity
      if (again !== null) request(again)
      if (wished !== Infinity) request(Math.max(0, wished - clock.now()))
    })
  }

  return {
    request,
    close() {
      closed = true
      if (timer !== null) clock.clearTimeout(timer)
    },
  }
}

/** Returns in how many milliseconds to flush again, if need be. */
async function flushOnce(options: FlusherOptions): Promise<number | null> {
  const { clock, flush, onError, leaseMs } = options
  const { flying, open, full } = takeParts(options.lanes())
  // lanes that have nothing to write still need their leases renewed in time
  const next = full ? 0 : open === 0 ? null : leaseMs / 4
  if (flying.size === 0) return next
  const sentAt = clock.now()
  try {
    const { held, busy } = await flush([...flying.values()].map(({ part }) => part.flush))
    for (const answer of held) {
      const { lane, part } = flying.get(answer.webhookId)!
      flying.delete(answer.webhookId)
      lane.flushed(part, answer, sentAt)
    }
    for (const id of busy) {
      const { lane, part } = flying.get(id)!
      flying.delete(id)
      lane.flushFailed(part.taken)
    }
    for (const { lane } of flying.values()) lane.lose()
    return busy.length > 0 ? Math.min(retryMs, next ?? retryMs) : next
  } catch (error) {
    onError(error)
    for (const { lane, part } of flying.values()) lane.flushFailed(part.taken)
    return retryMs
  }
}

/** What the lanes have to write, as much as one statement carries; the others wait for the next. */
function takeParts(lanes: Iterable<Lane>) {
  const flying = new Map<string, { lane: Lane; part: FlyingFlush }>()
  let open = 0
  let size = 0
  for (const lane of lanes) {
    open++
    if (lane.lease.isOverdue()) lane.lose()
    const part = size < fullFlush ? lane.takeFlush(lane.lease.isAgeing()) : null
    if (part === null) continue
    flying.set(lane.webhook.id, { lane, part })
    size += sizeOf(part.flush)
  }
  return { flying, open, full: size >= fullFlush }
}

function sizeOf({ rows, log }: LaneFlush): number {
  const texts = [...rows, ...log]
  return texts.reduce((sum, { error, answer }) => sum + (error?.length ?? 0) + (answer?.length ?? 0) + 100, 0)
}
