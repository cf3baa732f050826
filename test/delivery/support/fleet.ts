import type { Db } from '../../../src/db/port.ts'
import type { Clock } from '../../../src/ports.ts'
import { createSystemPorts, systemClock } from '../../../src/system-ports.ts'
import { Engine, type EngineOptions } from '../../../src/webhooks/engine/engine.ts'
import { defaultEngineSettings, type EngineSettings } from '../../../src/webhooks/engine/engine-settings.ts'
import { serveDeliveries, type WorkFeed } from '../../../src/webhooks/engine/serve.ts'
import { countStatements, kindOf, type CountingDb } from './counting-db.ts'

/** An engine at work, and the ways to break it. */
export interface Member {
  name: string
  engine: Engine
  counting: CountingDb
  /** From now on every statement fails, as for a process that was killed. */
  cut(): void
  /** The next flush is written, but its answer is lost. */
  loseNextFlush(): void
  /** The next flush does not reach the database. */
  refuseNextFlush(): void
  /** Statements fail for so long. */
  outage(ms: number): void
  wake(subject: string): void
  stop(withinMs?: number): Promise<void>
}

/** What {@link startMember} takes. */
export interface MemberOptions {
  name: string
  db: Db
  delivery: EngineOptions['delivery']
  settings?: Partial<EngineSettings>
  clock?: Clock
  /** Polls at this interval; absent: never, only wakes count. */
  pollMs?: number
}

export function startMember({ name, db, delivery, settings, clock, pollMs }: MemberOptions): Member {
  const ports = { ...createSystemPorts(), clock: clock ?? systemClock }
  const counting = countStatements(db)
  const engine = new Engine({
    db: counting.db,
    ports,
    delivery,
    settings: { ...defaultEngineSettings, ...settings },
    environment: null,
  })
  let brokenUntil = 0
  let answersToLose = 0
  let flushesToRefuse = 0
  counting.before((text) => {
    if (flushesToRefuse > 0 && kindOf(text) === 'flush') {
      flushesToRefuse--
      throw new Error('the connection was cut')
    }
    if (ports.clock.now() < brokenUntil) throw new Error('the connection is cut')
  })
  counting.after((text) => {
    if (answersToLose > 0 && kindOf(text) === 'flush') {
      answersToLose--
      throw new Error('the answer was lost')
    }
    if (ports.clock.now() < brokenUntil) throw new Error('the connection was cut')
  })
  const feed = createPollFeed(ports.clock, pollMs)
  const serving = serveDeliveries({ engine, feed, ports })
  return {
    name,
    engine,
    counting,
    cut: () => void (brokenUntil = Infinity),
    loseNextFlush: () => void answersToLose++,
    refuseNextFlush: () => void flushesToRefuse++,
    outage: (ms) => void (brokenUntil = ports.clock.now() + ms),
    wake: feed.wake,
    async stop(withinMs = 500) {
      feed.end()
      await serving
      await engine.stop({ withinMs })
    },
  }
}

interface PollFeed extends WorkFeed {
  wake(subject: string): void
  end(): void
}

/** What a forwarder and a pacer make together, as small as can be. */
function createPollFeed(clock: Clock, pollMs: number | undefined): PollFeed {
  const listeners = new Set<(subject: string) => void>()
  let poked = false
  let ended = false
  let check = (): void => {}
  const poke = (): void => {
    poked = true
    check()
  }
  return {
    onWake(callback) {
      listeners.add(callback)
      return () => void listeners.delete(callback)
    },
    poke,
    active() {},
    wake(subject) {
      for (const listener of listeners) listener(subject)
    },
    end() {
      ended = true
      check()
    },
    wait(dueAt) {
      const pollAt = pollMs === undefined ? Infinity : clock.now() + pollMs
      return new Promise((resolve) => {
        const inMs = Math.min(dueAt ?? Infinity, pollAt) - clock.now()
        const timer = inMs === Infinity ? undefined : clock.setTimeout(() => settle(), Math.max(0, inMs))
        const settle = (): void => {
          if (timer !== undefined) clock.clearTimeout(timer)
          check = () => {}
          if (ended) return resolve('aborted')
          if (poked) {
            poked = false
            return resolve('wake')
          }
          resolve(dueAt !== undefined && dueAt <= clock.now() ? 'due' : 'poll')
        }
        check = () => void ((ended || poked) && settle())
        check()
      })
    },
  }
}
