import fc from 'fast-check'
import type { EngineSettings } from '../../../src/webhooks/engine/engine-settings.ts'
import { startMember, type Member } from '../support/fleet.ts'
import { createScriptedEndpoint, type Act, type ScriptedEndpoint } from '../support/script.ts'
import { systemClock } from '../../../src/system-ports.ts'
import type { World } from '../support/world.ts'

export const orderings = ['stream', 'key', 'none'] as const
export type Ordering = (typeof orderings)[number]

/** One thing that happens, and then a pause. */
export type Step = { waitMs: number } & (
  | { kind: 'publish'; keys: (string | null)[] }
  | { kind: 'kill' | 'stop' | 'outage' | 'loseAnswer'; member: number }
  | { kind: 'steal' | 'pause' | 'resume'; webhook: number }
  | { kind: 'trim'; share: number }
)

const keyOf = fc.constantFrom('a', 'b', 'c', null)
const member = fc.nat(2)
const webhook = fc.nat(orderings.length - 1)
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('publish' as const),
      keys: fc.array(keyOf, { minLength: 1, maxLength: 20 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom('kill', 'stop', 'outage', 'loseAnswer'), member }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('steal', 'pause', 'resume'), webhook }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('trim' as const),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  },
)

/** What happens in a run: at most thirty steps. */
export const steps = fc.array(
  fc.tuple(step, fc.nat(60)).map(([one, waitMs]) => ({ ...one, waitMs }) as Step),
  { minLength: 3, maxLength: 30 },
)

/** How the attempts of events go: one list per event, in turn. */
export const plans = fc.array(
  fc.array(fc.constantFrom<Act>('ok', 'ok', 'ok', 'slow', 'bad', 'busy', 'reset', 'timeout', 'gone'), {
    maxLength: 4,
  }),
  { minLength: 1, maxLength: 40 },
)

/** Small, so that every bound is met in a short run. */
export const tightSettings: Partial<EngineSettings> = {
  leaseMs: 800,
  maxConcurrency: 4,
  maxWindow: 8,
  maxTroubledUnits: 3,
  flushMs: 10,
  lingerMs: 20,
  spillAfterMs: 30,
  maxLanes: 2,
}

export const maxAttempts = 3

/** A run: some engines, an endpoint, one webhook of each ordering on a stream of its own. */
export interface Chaos {
  stream: string
  webhooks: { id: string; ordering: Ordering }[]
  endpoint: ScriptedEndpoint
  published: { offset: number; key: string | null }[]
  /** Up to here events were trimmed. */
  trimmed: number
  /** Lets a step happen. */
  take(step: Step): Promise<void>
  /** Heals everything, and waits until nothing is left to do. */
  settle(): Promise<void>
  end(): Promise<void>
}

export async function startChaos(world: World, stream: string, planned: readonly Act[][]): Promise<Chaos> {
  const endpoint = createScriptedEndpoint(systemClock, (id, offset) => {
    return planned[(offset + id.charCodeAt(id.length - 1)) % planned.length] ?? []
  })
  const webhooks: Chaos['webhooks'] = []
  for (const ordering of orderings) {
    const { id } = await world.webhook({
      stream,
      ordering,
      maxAttempts,
      scheduleMs: [0, 20, 40],
      timeoutMs: 1_000,
    })
    webhooks.push({ id, ordering })
  }
  let born = 0
  const gone: Promise<void>[] = []
  const start = (): Member => {
    const name = `engine ${born++}`
    const delivery = endpoint.deliveryFor(name)
    return startMember({ name, db: world.db, delivery, settings: tightSettings, pollMs: 25 })
  }
  const members = [start(), start(), start()]
  const replace = (index: number): void => {
    // a killed one notices nothing: it is ended in the background, without a database
    gone.push(members[index]!.stop(20))
    members[index] = start()
  }
  const chaos: Chaos = {
    stream,
    webhooks,
    endpoint,
    published: [],
    trimmed: 0,
    async take(one) {
      await act(one)
      await new Promise((resolve) => setTimeout(resolve, one.waitMs))
    },
    async settle() {
      const ids = `('${webhooks.map(({ id }) => id).join("','")}')`
      await world.until<{ open: string }>(
        `with resumed as (update millrace.webhooks set state = 'active' where id in ${ids} and state <> 'active')
         select (
           (select count(*) from millrace.deliveries where webhook_id in ${ids} and state <> 'dead')
           + (select count(*) from millrace.webhooks w where id in ${ids} and (state <> 'active' or lease_until > now()
             or "offset" < coalesce((select max("offset") from millrace.events e where e.stream_id = w.stream_id), 0)))
         )::text as open`,
        ([row]) => row?.open === '0',
        25_000,
      )
    },
    async end() {
      await Promise.all([...members.map((one) => one.stop()), ...gone])
      await world.sql('delete from millrace.webhooks')
    },
  }

  async function act(one: Step): Promise<void> {
    switch (one.kind) {
      case 'publish': {
        const offsets = await world.publish(one.keys, stream)
        chaos.published.push(...offsets.map((offset, index) => ({ offset, key: one.keys[index] ?? null })))
        for (const { wake } of members) wake('all')
        return
      }
      case 'kill':
        members[one.member]!.cut()
        return replace(one.member)
      case 'stop':
        return replace(one.member)
      case 'outage':
        return members[one.member]!.outage(100)
      case 'loseAnswer':
        return members[one.member]!.loseNextFlush()
      case 'trim':
        return trim(one.share)
      case 'steal':
        await world.sql(
          `update millrace.webhooks set lease_token = gen_random_uuid(), lease_until = now() where id = $1`,
          [webhooks[one.webhook]!.id],
        )
        return
      case 'pause':
      case 'resume':
        await world.sql(`update millrace.webhooks set state = $2 where id = $1`, [
          webhooks[one.webhook]!.id,
          one.kind === 'pause' ? 'paused' : 'active',
        ])
    }
  }

  async function trim(share: number): Promise<void> {
    const bound = chaos.published[Math.floor(chaos.published.length * share * 0.5)]?.offset
    if (bound === undefined) return
    chaos.trimmed = Math.max(chaos.trimmed, bound)
    await world.sql(
      `delete from millrace.events e using millrace.streams s
       where s.id = e.stream_id and s.name = $1 and e."offset" <= $2`,
      [stream, bound],
    )
  }
  return chaos
}
