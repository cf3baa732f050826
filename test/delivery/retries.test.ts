import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createGate } from '../support/receiver.ts'
import { countStatements, kindOf } from './support/counting-db.ts'
import { createWorld, firstArrivals, offsetOf, type World } from './support/world.ts'

interface DeliveryRow {
  offset: string
  state: string
  attempts: number
  last_status: number | null
  last_error: string | null
  last_answer: string | null
}

const rows =
  'select "offset"::text, state, attempts, last_status, last_error, last_answer from millrace.deliveries'
const openWork = `select count(*)::integer as open from millrace.webhooks w where w.lease_token is not null or w."offset" <
  (select max("offset") from millrace.events e where e.stream_id = w.stream_id)
  or exists (select from millrace.deliveries d where d.webhook_id = w.id and d.state <> 'dead')`

describe('retries', () => {
  let world: World
  beforeEach(async () => {
    world = await createWorld()
  })
  afterEach(() => world.close())

  const isDone = ([row]: { open: number }[]): boolean => row?.open === 0
  const arrivalsOf = (offset: number) => world.receiver.requests.filter((one) => offsetOf(one) === offset)
  const failFor = (offset: () => number, status = 503) =>
    world.receiver.answer((request) =>
      offsetOf(request) === offset() ? { status, body: `no ${status}` } : { status: 200 },
    )

  for (const ordering of ['stream', 'key', 'none'] as const) {
    it(`end after exactly so many attempts in a dead letter, and what comes behind goes on (W1, W3; ${ordering})`, async () => {
      await world.webhook({ ordering, maxAttempts: 3, scheduleMs: [0, 30, 60] })
      let bad = -1
      failFor(() => bad)
      world.start()
      const gate = createGate()
      world.receiver.answerNext({ until: gate.opened })
      const offsets = await world.publish(['k', 'k', 'k', 'k', null, 'other'])
      bad = offsets[1]!
      gate.open()
      await world.until(openWork, isDone)
      const [dead, ...others] = await world.sql<DeliveryRow>(rows)
      expect(others).toEqual([])
      expect(dead).toEqual({
        offset: String(bad),
        state: 'dead',
        attempts: 3,
        last_status: 503,
        last_error: 'answered 503',
        last_answer: 'no 503',
      })
      expect(arrivalsOf(bad)).toHaveLength(3)
      const first = firstArrivals(world.receiver.requests).map(offsetOf)
      expect(first.toSorted((a, b) => a - b)).toEqual(offsets)
      for (const offset of offsets) expect(arrivalsOf(offset)).toHaveLength(offset === bad ? 3 : 1)
      if (ordering === 'none') return
      const behind = arrivalsOf(offsets[2]!)[0]!
      expect(behind.index).toBeGreaterThan(arrivalsOf(bad)[2]!.index)
    })
  }

  it('wait for their schedule, and for Retry-After when that is longer', async () => {
    await world.webhook({ maxAttempts: 5, scheduleMs: [0, 300] })
    world.receiver.answerNext({ status: 500 }, { status: 429, headers: { 'retry-after': '1' } })
    world.start()
    const [offset] = await world.publish(['k'])
    await world.receiver.waitFor(3, 20_000)
    const [first, second, third] = arrivalsOf(offset!)
    expect(second!.at - first!.at).toBeGreaterThanOrEqual(299)
    expect(third!.at - second!.at).toBeGreaterThanOrEqual(999)
    await world.until(openWork, isDone)
    const log = await world.sql<{ attempt: number; outcome: string; status: number }>(
      'select attempt, outcome, status from millrace.attempts order by id',
    )
    expect(log).toEqual([
      { attempt: 1, outcome: 'retry', status: 500 },
      { attempt: 2, outcome: 'retry', status: 429 },
      { attempt: 3, outcome: 'delivered', status: 200 },
    ])
  })

  it('that fall due while their webhook is worked on are loaded once, and no claim is needed', async () => {
    const counting = countStatements(world.db)
    await world.webhook({ scheduleMs: [0, 50] })
    let requests = 0
    world.receiver.answer(() => ({ status: ++requests % 2 === 1 ? 503 : 200 }))
    // whoever comes early finds nothing, and has to be claimed again when the lease is given back
    world.start({ db: counting.db, engine: { lingerMs: 60_000 } })
    for (let n = 1; n <= 5; n++) {
      await world.publish(['a'])
      await world.receiver.waitFor(2 * n, 20_000)
      await world.until('select from millrace.deliveries', (left) => left.length === 0)
    }
    const kinds = counting.statements.map(kindOf)
    // what is due, and then what is left of its unit
    expect(kinds.filter((kind) => kind === 'load')).toHaveLength(10)
  })

  it('leave no row and no line for an event that succeeds at once', async () => {
    await world.webhook()
    world.start()
    await world.publish(['a', 'b', null])
    await world.receiver.waitFor(3, 20_000)
    await world.until(openWork, isDone)
    expect(await world.sql('select from millrace.attempts')).toEqual([])
    expect(await world.sql('select from millrace.deliveries')).toEqual([])
  })

  it('stop at a 410: the webhook is disabled, nothing more is sent, and enabled again it delivers the rest (W1)', async () => {
    const { id } = await world.webhook({ ordering: 'stream' })
    world.receiver.answerNext({ status: 200 }, { status: 410 })
    world.start()
    const offsets = await world.publish(['a', 'b', 'c'])
    const [disabled] = await world.until<{ state: string; state_reason: string }>(
      'select state, state_reason from millrace.webhooks where lease_token is null',
      ([row]) => row?.state === 'disabled',
    )
    expect(disabled!.state_reason).toBe('answered 410 Gone')
    await world.publish(['a'])
    expect(world.receiver.requests.map(offsetOf)).toEqual(offsets.slice(0, 2))
    await world.sql(`update millrace.webhooks set state = 'active', state_reason = null`)
    await world.sql(`select pg_catalog.pg_notify('millrace.wake', 'w' || $1)`, [id])
    await world.receiver.waitFor(5, 20_000)
    await world.until(openWork, isDone)
    expect(firstArrivals(world.receiver.requests).map(offsetOf)).toHaveLength(4)
  })

  it('of an event that was trimmed end as a dead letter that says so, and its key goes on (W1)', async () => {
    await world.webhook({ maxAttempts: 5, scheduleMs: [0, 200] })
    let bad = -1
    failFor(() => bad)
    const offsets = await world.publish(['k', 'k', 'k'])
    bad = offsets[0]!
    world.start()
    await world.until<DeliveryRow>(rows, (all) => all.length === 3)
    await world.sql('delete from millrace.events where "offset" = $1', [bad])
    await world.until(openWork, isDone)
    const [dead, ...others] = await world.sql<DeliveryRow>(rows)
    expect(others).toEqual([])
    expect(dead).toMatchObject({ offset: String(bad), state: 'dead' })
    expect(dead!.last_error).toMatch(/trimmed/)
    expect(firstArrivals(world.receiver.requests).map(offsetOf)).toEqual(offsets)
  })

  it('survive an answer that Postgres cannot store as it is', async () => {
    await world.webhook({ maxAttempts: 2, scheduleMs: [0, 0] })
    world.receiver.answerNext({ status: 500, body: Buffer.from([0, 0xff, 0xed, 0xa0, 0x80, 0x41, 7]) })
    world.start()
    await world.publish(['k'])
    await world.receiver.waitFor(2, 20_000)
    await world.until(openWork, isDone)
    const [{ answer } = { answer: '' }] = await world.sql<{ answer: string }>(
      'select answer from millrace.attempts where attempt = 1',
    )
    expect(answer).toMatch(/^\ufffd+A$/)
  })
})
