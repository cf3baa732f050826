import { eq } from 'drizzle-orm'
import type { DrizzlePg } from '../../../src/db/port.ts'
import type { Millrace } from '../../../src/millrace.ts'
import type { ClaimedMessage } from '../../../src/queues/message.ts'

/** A write that takes `{ tx }`, on things of its own. */
export interface Write {
  name: string
  /** One statement, so that it fits a batch. */
  single: boolean
  /** Makes what the write is about. */
  prepare?(store: Millrace): Promise<void>
  run(store: Millrace, tx: DrizzlePg): Promise<unknown>
  /** What there is to see of it: other before the write than after. */
  look(store: Millrace): Promise<unknown>
}

const held = new Map<string, ClaimedMessage>()

/** A settle of a message that was claimed before. */
function settle(
  name: string,
  run: (store: Millrace, message: ClaimedMessage, tx: DrizzlePg) => Promise<unknown>,
): Write {
  return {
    name,
    single: true,
    async prepare(store) {
      await store.queue(name).send({ data: 1 })
      held.set(name, (await store.queue(name).claim({ leaseMs: 600_000 })).messages[0]!)
    },
    run: (store, tx) => run(store, held.get(name)!, tx),
    look: async (store) => {
      const { messages } = store.db.tables
      const [row] = await store.db.drizzle
        .select()
        .from(messages)
        .where(eq(messages.id, held.get(name)!.id))
      return [await store.queue(name).stats(), row?.state, row?.dueAt?.getTime()]
    },
  }
}

/** A dead letter to begin with. */
const withDeadLetter = (name: string) => async (store: Millrace) => {
  const queue = store.queue(name)
  await queue.send({ data: 1 })
  const { messages } = await queue.claim()
  await queue.fail(messages.map((message) => ({ ...message, reason: 'for the test' })))
}

const withStream = (name: string) => async (store: Millrace) => {
  await store.stream(name).publish({ type: 'a', data: 1 })
}

const daily = { target: { kind: 'queue', name: 'scheduled' }, everyMs: 86_400_000, data: 1 } as const
const withSchedule =
  (name: string, paused = false) =>
  async (store: Millrace) => {
    await store.schedules.put(name, { ...daily, paused })
  }

const events = (name: string) => async (store: Millrace) => (await store.stream(name).read()).events.length

/** Every write that takes `{ tx }`. */
export const writes: Write[] = [
  {
    name: 'publish',
    single: true,
    run: (store, tx) => store.stream('w1').publish({ type: 'a', data: 1 }, { tx }),
    look: events('w1'),
  },
  {
    name: 'publishMany with an idempotency key',
    single: true,
    run: (store, tx) =>
      store.stream('w2').publishMany(
        [
          { type: 'a', data: 1 },
          { type: 'b', data: 2 },
        ],
        { tx, idempotencyKey: 'k' },
      ),
    look: events('w2'),
  },
  {
    name: 'consumer.save',
    single: true,
    prepare: withStream('w3'),
    run: (store, tx) => store.stream('w3').consumer('c').save(1, { tx }),
    look: (store) => store.stream('w3').consumer('c').offset(),
  },
  {
    name: 'consumer.seek',
    single: true,
    prepare: withStream('w4'),
    run: (store, tx) => store.stream('w4').consumer('c').seek(1, { tx }),
    look: (store) => store.stream('w4').consumer('c').offset(),
  },
  {
    name: 'trim',
    single: false,
    prepare: withStream('w5'),
    run: (store, tx) => store.stream('w5').trim(Number.MAX_SAFE_INTEGER, { tx }),
    look: events('w5'),
  },
  {
    name: 'stream.configure',
    single: true,
    run: (store, tx) => store.stream('w6').configure({ count: 5 }, { tx }),
    look: async (store) => (await store.stream('w6').info())?.retention,
  },
  {
    name: 'send',
    single: true,
    run: (store, tx) => store.queue('w7').send({ data: 1 }, { tx }),
    look: async (store) => (await store.queue('w7').stats())?.ready,
  },
  {
    name: 'sendMany',
    single: true,
    run: (store, tx) => store.queue('w8').sendMany([{ data: 1, dedupeKey: 'd' }, { data: 2 }], { tx }),
    look: async (store) => (await store.queue('w8').stats())?.ready,
  },
  settle('ack', (store, message, tx) => store.queue('ack').ack([message], { tx })),
  settle('giveBack', (store, message, tx) => store.queue('giveBack').giveBack([message], { tx })),
  settle('retry', (store, message, tx) =>
    store.queue('retry').retry([{ ...message, delayMs: 60_000 }], { tx }),
  ),
  settle('extend', (store, message, tx) =>
    store.queue('extend').extend([message], { tx, leaseMs: 1_200_000 }),
  ),
  settle('fail', (store, message, tx) => store.queue('fail').fail([{ ...message, reason: 'r' }], { tx })),
  {
    name: 'redrive',
    single: true,
    prepare: withDeadLetter('w9'),
    run: (store, tx) => store.queue('w9').redrive({ tx }),
    look: async (store) => (await store.queue('w9').stats())?.dead,
  },
  {
    name: 'purgeDeadLetters',
    single: true,
    prepare: withDeadLetter('w10'),
    run: (store, tx) => store.queue('w10').purgeDeadLetters({ tx }),
    look: async (store) => (await store.queue('w10').stats())?.dead,
  },
  {
    name: 'queue.configure',
    single: true,
    run: (store, tx) => store.queue('w11').configure({ retainFinishedMs: 5 }, { tx }),
    look: async (store) => (await store.queue('w11').stats())?.retainFinishedMs,
  },
  {
    name: 'topic.bind',
    single: true,
    run: (store, tx) => store.topic('w12').bind('w12', { tx }),
    look: async (store) => (await store.topic('w12').queues()).length,
  },
  {
    name: 'topic.unbind',
    single: true,
    prepare: async (store) => void (await store.topic('w13').bind('w13')),
    run: (store, tx) => store.topic('w13').unbind('w13', { tx }),
    look: async (store) => (await store.topic('w13').queues()).length,
  },
  {
    name: 'topic.publish',
    single: true,
    prepare: async (store) => void (await store.topic('w14').bind('w14')),
    run: (store, tx) => store.topic('w14').publish([{ data: 1 }], { tx }),
    look: async (store) => (await store.queue('w14').stats())?.ready,
  },
  {
    name: 'schedules.put',
    single: false,
    run: (store, tx) => store.schedules.put('w15', daily, { tx }),
    look: async (store) => (await store.schedules.get('w15'))?.name,
  },
  {
    name: 'schedules.delete',
    single: true,
    prepare: withSchedule('w16'),
    run: (store, tx) => store.schedules.delete('w16', { tx }),
    look: async (store) => (await store.schedules.get('w16'))?.name,
  },
  {
    name: 'schedules.pause',
    single: true,
    prepare: withSchedule('w17'),
    run: (store, tx) => store.schedules.pause('w17', { tx }),
    look: async (store) => (await store.schedules.get('w17'))?.paused,
  },
  {
    name: 'schedules.resume',
    single: false,
    prepare: withSchedule('w18', true),
    run: (store, tx) => store.schedules.resume('w18', { tx }),
    look: async (store) => (await store.schedules.get('w18'))?.paused,
  },
  {
    name: 'schedules.runNow',
    single: false,
    prepare: withSchedule('w19'),
    run: (store, tx) => store.schedules.runNow('w19', { tx }),
    look: async (store) => (await store.queue('scheduled').stats())?.ready ?? 0,
  },
]
