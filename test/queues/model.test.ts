import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { claimMessages } from '../../src/queues/claim-messages.ts'
import { listDeadLetters } from '../../src/queues/dead-letters.ts'
import type { Held } from '../../src/queues/message.ts'
import { sendMessages } from '../../src/queues/send-messages.ts'
import {
  ackMessages,
  extendMessages,
  failMessages,
  retryMessages,
  returnMessages,
} from '../../src/queues/settle-messages.ts'
import { sweepQueues } from '../../src/queues/sweep-queues.ts'
import { messageStates, openDb, passTime, type OpenDb } from './support.ts'

let open: OpenDb
beforeAll(async () => {
  open = await openDb()
})
afterAll(() => open.close())

/** Long against what a run takes, so that only a step of the model moves the clock. */
const minute = 60_000

/** What the model knows of a message: everything that the rules speak of, in whole minutes. */
interface Model {
  key: string | null
  maxAttempts: number
  attempts: number
  state: 'waiting' | 'leased' | 'done' | 'dead'
  /** Leased: when the lease ends. Waiting: when it may be claimed. */
  due: number
  lease: string | undefined
}

interface World {
  queue: string
  now: number
  messages: Map<number, Model>
  /** Every lease that was ever given, current or stale. */
  leases: Held[]
}

/** A step of a run. Numbers choose among what there is, so that shrinking stays meaningful. */
type Step =
  | { do: 'send'; key: string | null; maxAttempts: number; delay: number }
  | { do: 'claim'; limit: number; lease: number }
  | { do: 'settle'; how: 'ack' | 'retry' | 'fail' | 'extend' | 'return'; which: number; minutes: number }
  | { do: 'pass'; minutes: number }
  | { do: 'sweep' }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('send' as const),
      key: fc.constantFrom(null, 'a', 'b'),
      maxAttempts: fc.integer({ min: 1, max: 3 }),
      delay: fc.constantFrom(0, 0, 0, 2),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('claim' as const),
      limit: fc.integer({ min: 1, max: 4 }),
      lease: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 7,
    arbitrary: fc.record({
      do: fc.constant('settle' as const),
      how: fc.constantFrom(
        'ack' as const,
        'retry' as const,
        'fail' as const,
        'extend' as const,
        'return' as const,
      ),
      which: fc.nat(1000),
      minutes: fc.integer({ min: 0, max: 4 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('pass' as const), minutes: fc.integer({ min: 1, max: 5 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('sweep' as const) }) },
)

/** What time does in the model, when somebody looks: waiting stays, an expired lease is waiting or dead. */
function expire(world: World): void {
  for (const message of world.messages.values()) {
    if (message.state !== 'leased' || message.due > world.now) continue
    message.state = message.attempts >= message.maxAttempts ? 'dead' : 'waiting'
    message.due = world.now
    message.lease = undefined
  }
}

/** Whose turn it is: of a key, the first that is neither done nor dead, while none of it is leased. */
function claimable(world: World): number[] {
  const seen = new Set<string>()
  const busy = new Set<string>()
  for (const { key, state } of world.messages.values()) if (key !== null && state === 'leased') busy.add(key)
  const ids: number[] = []
  for (const [id, { key, state, due }] of world.messages) {
    if (state === 'done' || state === 'dead') continue
    const first = key === null || (!seen.has(key) && !busy.has(key))
    if (key !== null) seen.add(key)
    if (first && state === 'waiting' && due <= world.now) ids.push(id)
  }
  return ids
}

async function send(world: World, how: Extract<Step, { do: 'send' }>): Promise<void> {
  const { messages } = await sendMessages(open.db, world.queue, [
    { dataText: '1', key: how.key, maxAttempts: how.maxAttempts, delayMs: how.delay * minute },
  ])
  world.messages.set(messages[0]!.id, {
    key: how.key,
    maxAttempts: how.maxAttempts,
    attempts: 0,
    state: 'waiting',
    due: world.now + how.delay,
    lease: undefined,
  })
}

async function claim(world: World, how: Extract<Step, { do: 'claim' }>): Promise<void> {
  expire(world)
  const expected = claimable(world).slice(0, how.limit)
  const { messages } = await claimMessages(open.db, world.queue, {
    limit: how.limit,
    leaseMs: how.lease * minute,
  })
  expect(messages.map(({ id }) => id)).toEqual(expected)
  for (const { id, lease, attempt } of messages) {
    const message = world.messages.get(id)!
    expect(attempt).toBe(message.attempts + 1)
    expect(world.leases.map((given) => given.lease)).not.toContain(lease)
    Object.assign(message, { attempts: attempt, state: 'leased', due: world.now + how.lease, lease })
  }
  world.leases.push(...messages.map(({ id, lease }) => ({ id, lease })))
}

/** Settles with any lease there ever was. The answer, and what comes of it, must be the model's. */
async function settle(world: World, how: Extract<Step, { do: 'settle' }>): Promise<void> {
  const held = world.leases[how.which % Math.max(1, world.leases.length)]
  if (held === undefined) return
  const message = world.messages.get(held.id)!
  const holds = message.state === 'leased' && message.lease === held.lease
  expect(await answerTo(world.queue, how, held)).toBe(holds)
  if (!holds) return
  if (how.how === 'extend') {
    message.due = Math.max(message.due, world.now + Math.max(1, how.minutes))
    return
  }
  message.lease = undefined
  message.due = world.now + (how.how === 'retry' ? how.minutes : 0)
  if (how.how === 'ack') message.state = 'done'
  else if (how.how === 'fail') message.state = 'dead'
  else if (how.how === 'return') Object.assign(message, { state: 'waiting', attempts: message.attempts - 1 })
  else message.state = message.attempts >= message.maxAttempts ? 'dead' : 'waiting'
}

async function answerTo(
  queue: string,
  how: Extract<Step, { do: 'settle' }>,
  held: Held,
): Promise<boolean | undefined> {
  const { db } = open
  switch (how.how) {
    case 'ack':
      return (await ackMessages(db, queue, [held]))[0]
    case 'fail':
      return (await failMessages(db, queue, [{ ...held, reason: 'told to' }]))[0]
    case 'extend':
      return (await extendMessages(db, queue, [held], { leaseMs: Math.max(1, how.minutes) * minute }))[0]
    case 'return':
      return (await returnMessages(db, queue, [held]))[0]
    case 'retry':
      return (await retryMessages(db, queue, [{ ...held, delayMs: how.minutes * minute }]))[0] !== 'lost'
  }
}

async function take(world: World, next: Step): Promise<void> {
  if (next.do === 'send') return send(world, next)
  if (next.do === 'claim') return claim(world, next)
  if (next.do === 'settle') return settle(world, next)
  if (next.do === 'pass') {
    world.now += next.minutes
    return passTime(open, world.queue, next.minutes * minute)
  }
  expire(world)
  await sweepQueues(open.db)
}

/** Every message is where the model says, and nowhere else. */
async function compare(world: World): Promise<void> {
  const states = await messageStates(open, world.queue)
  const dead = await listDeadLetters(open.db, world.queue)
  const actual = new Map<number, string>()
  for (const { id, state } of states) actual.set(id, state === 'leased' ? 'leased' : 'waiting')
  for (const { id, reason } of dead) {
    expect(reason).not.toBe('')
    expect(actual.has(id)).toBe(false)
    actual.set(id, 'dead')
  }
  const expected = [...world.messages].filter(([, { state }]) => state !== 'done')
  expect(actual).toEqual(new Map(expected.map(([id, { state }]) => [id, state])))
}

/** Whatever happened: works through what is left, and everything must come out. */
async function drain(world: World): Promise<void> {
  for (let round = 0; round < 200; round++) {
    world.now += 10
    await passTime(open, world.queue, 10 * minute)
    expire(world)
    const expected = claimable(world)
    const { messages } = await claimMessages(open.db, world.queue, { limit: 100 })
    expect(messages.map(({ id }) => id)).toEqual(expected)
    if (messages.length === 0) break
    await ackMessages(open.db, world.queue, messages)
    for (const { id } of messages) world.messages.get(id)!.state = 'done'
  }
  await compare(world)
  expect(await messageStates(open, world.queue)).toEqual([])
}

describe('a queue and its model', () => {
  let runs = 0
  it('agree on every answer and every state, in any order of expiry, reclaim and settle (Q1, Q2)', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
        const world: World = { queue: `model-${runs++}`, now: 0, messages: new Map(), leases: [] }
        for (const next of steps) {
          await take(world, next)
          await compare(world)
        }
        await drain(world)
      }),
      { numRuns: 40 },
    )
  }, 120_000)
})
