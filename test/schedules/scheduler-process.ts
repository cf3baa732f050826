/**
 * A scheduler as a process of its own, for tests that kill it: ticks, waits until something is due, ticks
 * again. Its clock is wrong by SKEW_MS, which must not matter (Q6). Prints a line when it has begun.
 */
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { tickSchedules } from '../../src/schedules/tick-schedules.ts'
import { silentLog, systemClock } from '../../src/system-ports.ts'

const skewMs = Number(process.env.SKEW_MS)
const rightNow = Date.now
Date.now = () => rightNow() + skewMs

const db = createNodePostgresDb({ url: process.env.DATABASE_URL!, maxConnections: 4 })
process.stdout.write('ready\n')
for (;;) {
  const { nextDueInMs } = await tickSchedules(
    db,
    { clock: systemClock, log: silentLog },
    { leaderTtlMs: 1000 },
  )
  await new Promise((resolve) => setTimeout(resolve, Math.min(nextDueInMs ?? 50, 50)))
}
