import type { Clock, Ports } from '../../ports.ts'
import type { ClaimScope } from './claim-webhooks.ts'
import type { ClaimReport, Engine } from './engine.ts'

/** What tells a serving loop when to look. */
export interface WorkFeed {
  /** Hands on each wake, `s` and the number of a stream, or `all`; returns the function that ends that. */
  onWake(callback: (subject: string) => void): () => void
  /** Resolves when poked, at `dueAt` (clock milliseconds), when it is time to poll, or at the end. */
  wait(dueAt: number | undefined): Promise<'wake' | 'due' | 'poll' | 'aborted'>
  /** Ends the wait now, or the next one at once. */
  poke(): void
  /** There was something to do: polls come at the short interval again. */
  active(): void
}

/** What {@link serveDeliveries} takes. */
export interface ServeOptions {
  engine: Engine
  feed: WorkFeed
  ports: Pick<Ports, 'clock' | 'log'>
  /** Called after every claim, with how it went; for readiness and tests. */
  onClaim?: (report: ClaimReport) => void
}

/** After a failed claim the next one waits so long, and twice as long each time it fails again, up to a minute. */
const errorPauseMs = 1_000
const longestErrorPauseMs = 60_000
/**
 * Where webhooks of a stream are being worked on, they are who the wake is for, and they read already: the claim,
 * for those that nobody works on, waits a moment and serves several wakes.
 */
const siblingsMs = 100
/** Where all of them are worked on here, nobody is left to claim; it is only made sure of. */
const wholeMs = 1_000
/** What lies above the horizon is looked at again so much later: a publisher that rolls back wakes nobody. */
const heldBackMs = 1_000

/**
 * Drives an engine until the feed ends: claims at the start, on wakes (only the streams concerned), when
 * something falls due and, where no wakes arrive, on polls. Idle, it makes no statement at all. Does not
 * stop the engine.
 */
export async function serveDeliveries(options: ServeOptions): Promise<void> {
  const { engine, feed, ports, onClaim } = options
  const wanted = createWanted(ports.clock)
  wanted.everything()
  const offWake = feed.onWake((subject) => {
    if (noteWake(subject, engine, wanted)) feed.poke()
  })
  engine.onLaneEnd((streamId, progressed) => {
    wanted.laneEnded(streamId, progressed)
    feed.poke()
  })
  let dueAt = Infinity
  let pauseMs = errorPauseMs
  let told = false
  for (;;) {
    const scope = wanted.take()
    if (scope !== null) {
      const report = await claimOrLog(engine, scope, ports)
      const now = ports.clock.now()
      if (report === null) {
        wanted.everything()
        dueAt = now + pauseMs
        pauseMs = Math.min(pauseMs * 2, longestErrorPauseMs)
      } else {
        pauseMs = errorPauseMs
        onClaim?.(report)
        if (report.full) wanted.everythingOnceFree()
        dueAt = report.nextDueInMs === null ? Infinity : now + Math.max(report.nextDueInMs, 0)
        if (report.started > 0) feed.active()
        told = tellForeign(report, told, ports)
      }
    }
    const nextAt = Math.min(dueAt, wanted.laterAt)
    const why = await feed.wait(nextAt === Infinity ? undefined : nextAt)
    if (why === 'aborted') break
    if (why === 'poll') {
      engine.wakeAll()
      wanted.everything()
    }
    if (why === 'due') wanted.due()
  }
  offWake()
}

/** Returns whether there is something to claim. */
function noteWake(subject: string, engine: Engine, wanted: Wanted): boolean {
  const id = subject.slice(1)
  if (subject === 'all') {
    engine.wakeAll()
    wanted.everything()
  } else if (subject.startsWith('s')) {
    if (!engine.wake(Number(id))) wanted.stream(Number(id))
    else if (engine.holdsAll(Number(id))) wanted.wholeStream(Number(id))
    else wanted.streamSoon(Number(id))
  } else if (subject.startsWith('w') && !engine.recheck(id)) {
    // it may just have been resumed
    wanted.webhook(id)
  } else return false
  return true
}

async function claimOrLog(
  engine: Engine,
  scope: ClaimScope,
  { log }: Pick<Ports, 'log'>,
): Promise<ClaimReport | null> {
  try {
    return await engine.claim(scope)
  } catch (error) {
    log.warn({ err: error }, 'webhooks could not be claimed, trying again')
    return null
  }
}

function tellForeign(report: ClaimReport, told: boolean, { log }: Pick<Ports, 'log'>): boolean {
  const foreign = report.foreignEnvironment
  if (foreign !== null && !told) {
    log.error(
      foreign,
      'the database belongs to another environment: nothing is delivered (see `millrace adopt`)',
    )
  }
  if (foreign === null && told) log.info({}, 'the database belongs to this environment now: delivery goes on')
  return foreign !== null
}

type Wanted = ReturnType<typeof createWanted>

/** What the next claim shall look at, gathered while the last one ran. */
function createWanted(clock: Clock) {
  let all = false
  let allOnceFree = false
  let due = false
  let streams = new Set<number>()
  let webhooks = new Set<string>()
  const heldBack = createLater(clock, heldBackMs)
  const siblings = createLater(clock, siblingsMs)
  const whole = createLater(clock, wholeMs)

  function scope(): ClaimScope | null {
    if (all || (webhooks.size > 0 && (streams.size > 0 || due))) return { kind: 'all' }
    if (webhooks.size > 0) return { kind: 'webhooks', ids: [...webhooks] }
    if (streams.size > 0) return { kind: 'streams', streamIds: [...streams] }
    return due ? { kind: 'due' } : null
  }

  return {
    everything: () => void (all = true),
    /** No more could be taken: there may be more of everything, once there is room. */
    everythingOnceFree: () => void (allOnceFree = true),
    due: () => void (due = true),
    stream: (id: number) => void streams.add(id),
    streamSoon: siblings.add,
    wholeStream: whole.add,
    webhook: (id: string) => void webhooks.add(id),
    laneEnded(streamId: number, progressed: boolean) {
      if (allOnceFree) all = true
      allOnceFree = false
      if (progressed) return void streams.add(streamId)
      heldBack.add(streamId)
    },
    /** When streams that wait are to be claimed; Infinity: none does. */
    get laterAt() {
      return Math.min(heldBack.at, siblings.at, whole.at)
    },
    take(): ClaimScope | null {
      for (const id of [...heldBack.take(), ...siblings.take(), ...whole.take()]) streams.add(id)
      const taken = scope()
      all = false
      due = false
      streams = new Set()
      webhooks = new Set()
      return taken
    },
  }
}

/** Streams that wait for a time, counted from the first that came. */
function createLater(clock: Clock, delayMs: number) {
  let ids = new Set<number>()
  let at = Infinity
  return {
    add(id: number) {
      ids.add(id)
      at = Math.min(at, clock.now() + delayMs)
    },
    get at() {
      return at
    },
    /** Those whose time has come. */
    take(): Iterable<number> {
      if (clock.now() < at) return []
      const taken = ids
      ids = new Set()
      at = Infinity
      return taken
    },
  }
}
