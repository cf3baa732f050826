import { vi } from 'vitest'
import { createNodePostgresDb } from '../../../src/db/drivers/node-postgres.ts'
import { startDelivery, type RunningDelivery } from '../../../src/node/start-delivery.ts'
import { startSchedules } from '../../../src/node/start-schedules.ts'
import { readSettings } from '../../../src/settings.ts'
import { createSystemPorts } from '../../../src/system-ports.ts'
import { createWorld, type World } from '../../delivery/support/world.ts'
import { createDrivenClock, type DrivenClock } from '../../support/clock.ts'
import { startStatementProxy, type StatementProxy } from './statement-proxy.ts'

/** All loops of a forwarder on a clock that a test drives, behind a door that counts. */
export interface IdleProcess {
  world: World
  door: StatementProxy
  clock: DrivenClock
  delivery: RunningDelivery
  /** Moves the clock on by `ms`; whenever a timer rings, it stands still until the database has answered. */
  pass(ms: number): Promise<void>
  /** Drives the clock until the condition holds; resolves with the clock milliseconds that took. */
  until(met: () => unknown, options?: { stepMs?: number; atMostMs?: number }): Promise<number>
  /** Resolves once nothing has been asked, and no connection opened, for a while. */
  quiet(): Promise<void>
  close(): Promise<void>
}

export async function startIdleProcess(env: Record<string, string> = {}): Promise<IdleProcess> {
  const world = await createWorld()
  const door = await startStatementProxy(world.url)
  const clock = createDrivenClock()
  const db = createNodePostgresDb({ url: door.through(world.url), applicationName: 'idle process' })
  const settings = readSettings({ MILLRACE_ALLOW_INSECURE_TARGETS: '1', ...env })
  // the largest, so that polls come early rather than late
  const ports = { ...createSystemPorts(), clock, random: () => 0 }
  const delivery = startDelivery({ db, settings, sealer: null, ports })
  const schedules = startSchedules({ db, forwarder: delivery.forwarder, ports, poll: settings.poll })
  return {
    world,
    door,
    clock,
    delivery,
    async pass(ms) {
      const end = clock.now() + ms
      while (clock.now() < end) {
        await clock.advance(Math.min(clock.nextIn() ?? ms, end - clock.now()))
        await quiet(door, 8)
      }
    },
    until: (met, options) => drive(clock, met, options),
    quiet: () => quiet(door, 50),
    async close() {
      const stopping = Promise.all([schedules.stop(), delivery.stop({ withinMs: 100 })])
      let stopped = false
      void stopping.finally(() => (stopped = true))
      await drive(clock, () => stopped, { stepMs: 100, atMostMs: Infinity })
      await db.close()
      await door.close()
      await world.close()
    },
  }
}

/**
 * Resolves once nothing has been asked, and no connection made, for so many turns of the event loop: a machine
 * that stands still for a moment makes no turns.
 */
async function quiet(door: StatementProxy, forTurns: number): Promise<void> {
  const asked = (): string => `${door.statements.length} ${door.accepted()}`
  let [before, turns] = [asked(), 0]
  await vi.waitFor(
    () => {
      turns = door.busy() || asked() !== before ? 0 : turns + 1
      before = asked()
      if (turns < forTurns) throw new Error('still at work')
    },
    { timeout: 30_000, interval: 5 },
  )
}

/** Slower than the real time, so that a busy machine does not look like a slow program. */
async function drive(
  clock: DrivenClock,
  met: () => unknown,
  { stepMs = 5, atMostMs = 60_000 }: { stepMs?: number; atMostMs?: number } = {},
): Promise<number> {
  const from = clock.now()
  const endAt = Date.now() + 60_000
  while (!met()) {
    if (clock.now() - from > atMostMs || Date.now() > endAt)
      throw new Error(`not within ${clock.now() - from} ms of the clock: ${met.toString()}`)
    await clock.advance(stepMs)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return clock.now() - from
}
