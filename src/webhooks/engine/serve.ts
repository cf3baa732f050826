import type { Ports } from '../../ports.ts'
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

/** After a failed claim the next one waits so long. */
const errorPauseMs = 1_000

/**
 * Drives an engine until the feed ends: claims at the start, on wakes (only the streams concerned), when
 * something falls due and, where no wakes arrive, on polls. Idle, it makes no statement at all. Does not
 * stop the engine.
 */
export async function serveDeliveries({ engine, feed, ports, onClaim }: ServeOptions): Promise<void> {
  const wanted = createWanted()
  wanted.everything()
  const offWake = feed.onWake((subject) => {
    if (subject === 'all') {
      engine.wakeAll()
      wanted.everything()
    } else if (subject.startsWith('s')) {
      const streamId = Number(subject.slice(1))
      engine.wake(streamId)
      wanted.stream(streamId)
    } else if (subject.startsWith('w')) {
      engine.recheck(subject.slice(1))
      return
    }
    feed.poke()
  })
  engine.onLaneEnd((streamId) => {
    wanted.stream(streamId)
    feed.poke()
  })
  let dueAt: number | undefined
  let told = false
  for (;;) {
    const scope = wanted.take()
    if (scope !== null) {
      const report = await claimOrLog(engine, scope, ports)
      if (report === null) {
        wanted.everything()
        dueAt = ports.clock.now() + errorPauseMs
      } else {
        onClaim?.(report)
        dueAt = report.nextDueInMs === null ? undefined : ports.clock.now() + Math.max(report.nextDueInMs, 0)
        if (report.started > 0) feed.active()
        told = tellForeign(report, told, ports)
      }
    }
    const why = await feed.wait(dueAt)
    if (why === 'aborted') break
    if (why === 'poll') {
      engine.wakeAll()
      wanted.everything()
    }
    if (why === 'due') wanted.due()
  }
  offWake()
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
  return foreign !== null
}

/** What the next claim shall look at, gathered while the last one ran. */
function createWanted() {
  let all = false
  let due = false
  let streams = new Set<number>()
  return {
    everything: () => void (all = true),
    due: () => void (due = true),
    stream: (id: number) => void streams.add(id),
    take(): ClaimScope | null {
      if (!all && !due && streams.size === 0) return null
      const scope: ClaimScope = all
        ? { kind: 'all' }
        : streams.size > 0
          ? { kind: 'streams', streamIds: [...streams] }
          : { kind: 'due' }
      all = false
      due = false
      streams = new Set()
      return scope
    },
  }
}
