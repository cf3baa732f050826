/**
 * A service as a process of its own that dies, as by a power cut, at the step named in STEP. Each message is
 * handled in a transaction: it writes a row, and publishes an event.
 */
import { Bus, handlerFor } from '@node-ts/bus-core'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { MillraceTransport } from '../../src/node-ts-bus/transport.ts'
import { crashSteps, EffectDone, WriteEffect, type CrashStep } from './crash-messages.ts'
import { sql } from 'drizzle-orm'
import type { DrizzlePg } from '../../src/db/port.ts'

const { DATABASE_URL: url, QUEUE: queueName } = process.env as Record<string, string>
const fatal = crashSteps.find((step) => step === process.env.STEP)

/** Never returns at the fatal step. */
function reach(step: CrashStep): Promise<void> | void {
  if (step !== fatal) return
  process.kill(process.pid, 'SIGKILL')
  return new Promise(() => {})
}

class CrashingTransport extends MillraceTransport {
  override async publish(...event: Parameters<MillraceTransport['publish']>): Promise<void> {
    await super.publish(...event)
    await reach('event sent')
  }

  override async deleteMessage(message: Parameters<MillraceTransport['deleteMessage']>[0]): Promise<void> {
    await reach('before the delete')
    await super.deleteMessage(message)
    await reach('deleted')
  }
}

const db = createNodePostgresDb({ url: url!, maxConnections: 4 })
const transport = new CrashingTransport({ db, queueName: queueName!, leaseMs: 1000 })
const bus = Bus.configure()
  .withTransport(transport)
  .withMessageReadMiddleware(
    transport.transactional(async (work) => {
      await db.transaction(async ({ drizzle }) => {
        await reach('begun')
        await work(drizzle)
        await reach('before the commit')
      })
      await reach('committed')
    }),
  )
  .withHandler(
    handlerFor(WriteEffect, async ({ step }) => {
      const tx = transport.currentTransaction<DrizzlePg>()!
      await tx.execute(sql`insert into public.effects values (${step})`)
      await reach('row written')
      await bus.publish(new EffectDone(step))
    }),
  )
  .build()
await bus.initialize()
await bus.start()
process.stdout.write('ready\n')
