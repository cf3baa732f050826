import type { Db } from '../db/port.ts'
import type { Ports } from '../ports.ts'
import { runRetention } from '../streams/retention.ts'
import type { Forwarder } from '../wakes/forwarder.ts'
import { removeOldAttempts } from '../webhooks/attempt-retention.ts'
import { createAlarm } from '../webhooks/engine/alarm.ts'

/** What is too old may stay a minute longer: one look a minute costs nothing, one per publish would. */
const pauseMs = 60_000
/** Where no wakes arrive, nobody says that something was published. */
const unwokenMs = 600_000
/** A timer cannot be set for longer than some 24 days. */
const longestMs = 86_400_000

/** What {@link startHousekeeping} takes. */
export interface HousekeepingSetup {
  db: Db
  ports: Pick<Ports, 'clock' | 'log'>
  forwarder: Pick<Forwarder, 'mode' | 'onWake'>
}

/** The housekeeping of this process, running. */
export interface Housekeeping {
  /** Waits for the statement that is on its way. */
  stop(): Promise<void>
}

/**
 * Removes in the background what streams need not keep, and old attempts. It looks when something was
 * published or configured, at most once a minute and first a minute after the start, and when something
 * becomes old enough. Idle, it makes no statement.
 */
export function startHousekeeping({ db, ports, forwarder }: HousekeepingSetup): Housekeeping {
  const { clock, log } = ports
  const stop = new AbortController()
  let notBefore = clock.now() + pauseMs
  let running: Promise<void> | undefined
  let wanted = false
  const ringAt = (inMs: number): void =>
    alarm.ring(Math.min(Math.max(inMs, notBefore - clock.now(), 0), longestMs))

  async function run(): Promise<void> {
    wanted = false
    notBefore = clock.now() + pauseMs
    try {
      const { nextDueInMs } = await runRetention(db, { clock, signal: stop.signal })
      await removeOldAttempts(db, { isOver: () => stop.signal.aborted })
      if (nextDueInMs !== null) ringAt(nextDueInMs)
    } catch (error) {
      if (!stop.signal.aborted) log.warn({ err: error }, 'old events and attempts could not be removed yet')
      ringAt(pauseMs)
    }
    if (wanted) ringAt(0)
    if (forwarder.mode !== 'listening') ringAt(unwokenMs)
  }

  const alarm = createAlarm(clock, () => {
    running ??= run().finally(() => {
      running = undefined
      if (stop.signal.aborted) alarm.cancel()
    })
  })
  const offWake = forwarder.onWake((subject) => {
    if (!subject.startsWith('s') && subject !== 'all') return
    wanted = true
    if (running === undefined) ringAt(0)
  })
  ringAt(unwokenMs)
  return {
    async stop() {
      stop.abort()
      offWake()
      alarm.cancel()
      await running
    },
  }
}
