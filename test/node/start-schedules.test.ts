import { afterEach, describe, expect, it, vi } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import type { Db } from '../../src/db/port.ts'
import { startSchedules } from '../../src/node/start-schedules.ts'
import { claimMessages } from '../../src/queues/claim-messages.ts'
import { sendMessages } from '../../src/queues/send-messages.ts'
import { nextSweepInMs } from '../../src/queues/next-sweep.ts'
import { getQueueStats } from '../../src/queues/queue-stats.ts'
import { putSchedule } from '../../src/schedules/put-schedule.ts'
import { createSystemPorts } from '../../src/system-ports.ts'
import { createForwarder } from '../../src/wakes/forwarder.ts'
import { createMigratedDatabase } from '../support/migrated.ts'

const within = { timeout: 20_000, interval: 20 }

describe('the recurring work of a process', () => {
  const ends: (() => Promise<void>)[] = []
  afterEach(async () => {
    for (const end of ends.splice(0).toReversed()) await end()
  })

  async function open(): Promise<Db> {
    const database = await createMigratedDatabase()
    const db = createNodePostgresDb({ url: database.url })
    ends.push(
      () => database.drop(),
      () => db.close(),
    )
    return db
  }

  function start(db: Db) {
    const ports = createSystemPorts()
    const connect = (signal: AbortSignal) => db.connectDirect({ signal })
    const forwarder = createForwarder({ connect, schema: db.schema, ports, listen: true })
    const running = startSchedules({ db, forwarder, ports })
    ends.push(
      () => forwarder.close(),
      () => running.stop(),
    )
    forwarder.start()
    return forwarder
  }

  it('Q5: fires a schedule that was put after the start, once a boundary, whoever else ticks', async () => {
    const db = await open()
    await start(db).waitFor('listening')
    await start(db).waitFor('listening')
    await putSchedule(db, 'tick', {
      target: { kind: 'queue', name: 'ticks' },
      everyMs: 200,
      catchUp: 'all',
      dataText: '1',
    })
    const due: string[] = []
    await vi.waitFor(async () => {
      const { messages } = await claimMessages(db, 'ticks', { limit: 100 })
      due.push(...messages.map(({ headers }) => headers!['millrace-due-at']!))
      expect(due.length).toBeGreaterThanOrEqual(4)
    }, within)
    expect(new Set(due).size).toBe(due.length)
  })

  it('Q2: sweeps what was stranded before the start, in a queue without a worker', async () => {
    const db = await open()
    await sendMessages(db, 'stranded', [{ dataText: '1', maxAttempts: 1 }])
    await claimMessages(db, 'stranded', { leaseMs: 1 })
    await vi.waitFor(async () => expect(await nextSweepInMs(db)).toBe(0), within)
    start(db)
    await vi.waitFor(
      async () => expect(await getQueueStats(db, 'stranded')).toMatchObject({ leased: 0, dead: 1 }),
      within,
    )
    expect(await nextSweepInMs(db)).toBeNull()
  })

  it('says when the next sweep is due', async () => {
    const db = await open()
    expect(await nextSweepInMs(db)).toBeNull()
    await sendMessages(db, 'later', [{ dataText: '1', delayMs: 3_600_000 }, { dataText: '2' }])
    const inMs = await nextSweepInMs(db)
    expect(inMs).toBeGreaterThan(3_000_000)
    expect(inMs).toBeLessThanOrEqual(3_600_000)
  })
})
