import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createSystemPorts } from '../../src/system-ports.ts'
import { claimWebhooks, type ClaimRequest } from '../../src/webhooks/engine/claim-webhooks.ts'
import { drain } from '../../src/webhooks/engine/drain.ts'
import { flushOutcomes, type DeliveryRow } from '../../src/webhooks/engine/flush-outcomes.ts'
import { flushPart } from './support/flush-part.ts'
import { heldUp } from './support/held-up.ts'
import { startMember } from './support/fleet.ts'
import { createScriptedEndpoint, type Act } from './support/script.ts'
import { createWorld, type World } from './support/world.ts'

const ports = createSystemPorts()

describe('races at the database', () => {
  let world: World
  beforeEach(async () => {
    world = await createWorld()
  })
  afterEach(() => world.close())

  const claim = (request: Partial<ClaimRequest> = {}, db = world.db) =>
    claimWebhooks(db, {
      scope: { kind: 'all' },
      token: crypto.randomUUID(),
      leaseMs: 30_000,
      limit: 10,
      environment: null,
      ...request,
    })

  function row(offset: number, state: DeliveryRow['state']): DeliveryRow {
    return { offset, unit: 'k', state, attempts: 1, delayMs: 0, status: null, error: null, answer: null }
  }

  /** Another session, in a transaction that has run the statement. */
  async function inTransaction(statement: string): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: world.url })
    await client.connect()
    world.onClose(() => client.end())
    await client.query('begin')
    await client.query(statement)
    return client
  }

  it('a flush while the webhook is being changed says that it is busy, and stands when repeated (W4)', async () => {
    const { id } = await world.webhook()
    await world.publish(['k', 'k'])
    const token = crypto.randomUUID()
    await claim({ token })
    const admin = await inTransaction('update millrace.webhooks set rate_limit = 5')
    const flush = flushPart(id, token, {
      offset: 2,
      rows: [row(1, 'retrying'), row(2, 'blocked')],
      failed: true,
    })
    expect(await flushOutcomes(world.db, [flush], 30_000)).toEqual({ held: [], busy: [id] })
    expect(await world.sql('select from millrace.deliveries')).toEqual([])
    await admin.query('commit')
    const { held } = await flushOutcomes(world.db, [flush], 30_000)
    expect(held).toMatchObject([{ webhookId: id, state: 'active' }])
  })

  it('a flush whose webhook is changed after its snapshot promotes all the same', async () => {
    const { id } = await world.webhook()
    const token = crypto.randomUUID()
    await world.publish(['k', 'k'])
    await claim({ token })
    const rows = [row(1, 'retrying'), row(2, 'blocked')]
    await flushOutcomes(world.db, [flushPart(id, token, { offset: 2, rows })], 30_000)
    const flush = flushPart(id, token, { rows: [row(1, 'gone')], promote: ['k'], offset: 2 })
    const overtaken = await heldUp(
      world,
      (db) => flushOutcomes(db, [flush], 30_000),
      () => world.sql('update millrace.webhooks set rate_limit = 7'),
    )
    expect(overtaken).toMatchObject({ held: [{ webhookId: id }], busy: [] })
    expect(overtaken.held[0]!.dueInMs).toBeLessThanOrEqual(0)
    expect(await world.sql('select "offset"::integer, state from millrace.deliveries')).toEqual([
      { offset: 2, state: 'retrying' },
    ])
  })

  it('a flush that is repeated because its answer was lost changes nothing twice', async () => {
    const { id } = await world.webhook()
    const token = crypto.randomUUID()
    await world.publish(['k', 'k', 'k'])
    await claim({ token })
    const first = [row(1, 'retrying'), row(2, 'blocked'), row(3, 'blocked')]
    await flushOutcomes(world.db, [flushPart(id, token, { offset: 3, rows: first })], 30_000)
    const flush = flushPart(id, token, { offset: 3, rows: [row(1, 'gone')], promote: ['k'] })
    for (let times = 0; times < 2; times++) await flushOutcomes(world.db, [flush], 30_000)
    expect(await world.sql('select "offset"::integer, state from millrace.deliveries order by 1')).toEqual([
      { offset: 2, state: 'retrying' },
      { offset: 3, state: 'blocked' },
    ])
  })

  it('a flush of one that lost its lease changes nothing, beside one that holds its own (W5)', async () => {
    const [a, b] = [await world.webhook({ path: '/a' }), await world.webhook({ path: '/b' })]
    await world.publish(['k'])
    const token = crypto.randomUUID()
    await claim({ token })
    const lost = flushPart(a.id, crypto.randomUUID(), {
      offset: 1,
      rows: [row(1, 'dead')],
      disable: 'no',
      promote: ['k'],
      release: true,
      log: [
        { offset: 1, attempt: 1, outcome: 'dead', durationMs: 1, status: 500, error: null, answer: null },
      ],
    })
    const result = await flushOutcomes(world.db, [lost, flushPart(b.id, token, { offset: 1 })], 30_000)
    expect(result).toMatchObject({ held: [{ webhookId: b.id }], busy: [] })
    const [untouched] = await world.sql(
      'select "offset"::integer, state, lease_token from millrace.webhooks where id = $1',
      [a.id],
    )
    expect(untouched).toEqual({ offset: 0, state: 'active', lease_token: token })
    expect(await world.sql('select from millrace.deliveries')).toEqual([])
    expect(await world.sql('select from millrace.attempts')).toEqual([])
  })

  it('texts that Postgres cannot store are cleaned, not refused for all webhooks (W4)', async () => {
    const { id } = await world.webhook()
    await world.publish(['k'])
    const token = crypto.randomUUID()
    await claim({ token })
    const rows = [{ ...row(1, 'retrying'), error: 'half \ud83d', answer: 'nul \0 here' }]
    await flushOutcomes(world.db, [flushPart(id, token, { rows })], 30_000)
    expect(await world.sql('select last_error, last_answer from millrace.deliveries')).toEqual([
      { last_error: 'half \ufffd', last_answer: 'nul  here' },
    ])
  })

  it('a webhook that another transaction is changing is claimed a moment later', async () => {
    const { id } = await world.webhook()
    await world.publish(['k'])
    const admin = await inTransaction('update millrace.webhooks set rate_limit = 5')
    const missed = await claim()
    expect(missed.webhooks).toEqual([])
    expect(missed.nextDueInMs).toBeLessThanOrEqual(1_000)
    await admin.query('commit')
    expect((await claim()).webhooks.map((webhook) => webhook.id)).toEqual([id])
  })

  it('a claim that is overtaken by all that another worker does takes nothing: it knows the deliveries of before (W3)', async () => {
    const { id } = await world.webhook()
    await world.publish(['k', 'k'])
    const another = async (): Promise<void> => {
      const token = crypto.randomUUID()
      await claim({ token })
      const rows = [row(1, 'retrying')]
      await flushOutcomes(world.db, [flushPart(id, token, { offset: 1, rows, release: true })], 30_000)
    }
    const overtaken = await heldUp(world, (db) => claim({}, db), another)
    expect(overtaken.webhooks).toEqual([])
    expect(overtaken.nextDueInMs).toBeLessThanOrEqual(1_000)
    const [now] = (await claim()).webhooks
    expect(now).toMatchObject({ id, offset: 1, units: ['k'] })
  })

  it('a claim that saw a lease run out takes nothing when its holder writes after all (W3)', async () => {
    const { id } = await world.webhook()
    await world.publish(['k', 'k'])
    const token = crypto.randomUUID()
    await claim({ token })
    await world.sql(`update millrace.webhooks set lease_until = now() - interval '1 second'`)
    const flush = flushPart(id, token, {
      renew: false,
      offset: 2,
      rows: [row(1, 'retrying'), row(2, 'blocked')],
    })
    const { webhooks } = await heldUp(
      world,
      (db) => claim({}, db),
      () => flushOutcomes(world.db, [flush], 30_000),
    )
    expect(webhooks).toEqual([])
    const [left] = await world.sql<{ token: string }>('select lease_token as token from millrace.webhooks')
    expect(left).toEqual({ token })
  })

  it('of ten claims at once, one gets the webhook', async () => {
    await world.webhook()
    await world.publish(['k'])
    const claims = await Promise.all(Array.from({ length: 10 }, () => claim()))
    expect(claims.flatMap(({ webhooks }) => webhooks)).toHaveLength(1)
  })

  it('a webhook left saturated, with nothing in trouble any more, is claimed again (W1)', async () => {
    const { id } = await world.webhook({ ordering: 'stream' })
    await world.publish(['k'])
    // what a worker leaves that dies between the flush of the last retry and the next one
    await world.sql('update millrace.webhooks set saturated = true')
    expect((await claim()).webhooks.map((webhook) => webhook.id)).toEqual([id])
  })

  it('what a worker that died had recorded beyond the offset is not taken from the stream again (W1, W3)', async () => {
    const { id } = await world.webhook()
    const [, retrying, dead, blocked, loose] = await world.publish(['a', 'b', 'c', 'b', null, 'a'])
    const later = `now() + interval '1 hour'`
    await world.sql(
      `insert into millrace.deliveries (webhook_id, "offset", unit, state, attempts, due_at) values
       ($1, $2, 'b', 'retrying', 2, ${later}), ($1, $3, 'c', 'dead', 3, null), ($1, $4, 'b', 'blocked', 0, null),
       ($1, $5, null, 'retrying', 1, ${later})`,
      [id, retrying, dead, blocked, loose],
    )
    await world.sql(`update millrace.webhooks set due_at = ${later}`)
    const before = await world.sql('select * from millrace.deliveries order by "offset"')
    const endpoint = createScriptedEndpoint(ports.clock, () => [])
    await drain({
      db: world.db,
      ports,
      environment: null,
      budgetMs: 20_000,
      delivery: endpoint.deliveryFor('drain'),
    })
    expect(endpoint.history.map(({ offset }) => offset)).toEqual([1, 6])
    expect(await world.sql('select * from millrace.deliveries order by "offset"')).toEqual(before)
  })

  it('a webhook whose holder died is claimed as due once its lease has run out, with no wake (W1)', async () => {
    const { id } = await world.webhook()
    await world.publish(['k'])
    await claim({ leaseMs: 300 })
    const { webhooks, nextDueInMs } = await claim({ scope: { kind: 'due' } })
    expect(webhooks).toEqual([])
    expect(nextDueInMs).toBeLessThanOrEqual(300)
    await world.until('select from millrace.webhooks where lease_until <= now()', (rows) => rows.length > 0)
    const again = await claim({ scope: { kind: 'due' } })
    expect(again.webhooks.map((webhook) => webhook.id)).toEqual([id])
  })

  it('a database of another environment hands out nothing (W7)', async () => {
    await world.webhook()
    await world.publish(['k'])
    const { webhooks, environment } = await claim({ environment: 'staging' })
    expect([webhooks, environment]).toEqual([[], null])
  })

  it('what is published during a drain is delivered by it, without any wake (N4)', async () => {
    const endpoint = createScriptedEndpoint(ports.clock, () => [])
    await world.webhook()
    const [first] = await world.publish(['a'])
    const delivery = endpoint.deliveryFor('drain')
    let more: Promise<number[]> | undefined
    const report = await drain({
      db: world.db,
      ports,
      environment: null,
      budgetMs: 20_000,
      delivery: (installation) => ({
        ...delivery(installation),
        attempt: async (webhook, event, cancel) => {
          // after the page was read to its end
          if (event.offset === first) await (more = world.publish(['b']))
          return delivery(installation).attempt(webhook, event, cancel)
        },
      }),
    })
    expect(endpoint.history.map(({ offset }) => offset)).toEqual([first, ...(await more!)])
    expect(report.cut).toBe(false)
  })

  it('a drain does not spin on what a publisher holds back', async () => {
    const endpoint = createScriptedEndpoint(ports.clock, () => [])
    await world.webhook()
    await inTransaction(
      `select millrace.append('orders', array['t'], array[null]::text[], array['0'], array[null]::text[], null, null)`,
    )
    await world.publish(['b'])
    const delivery = endpoint.deliveryFor('drain')
    const report = await drain({ db: world.db, ports, environment: null, budgetMs: 20_000, delivery })
    expect(report).toMatchObject({ cut: false, webhooks: 1 })
    expect(report.nextDueInMs).toBeLessThanOrEqual(1_000)
  })

  it('a flush whose answer is lost, or that never arrives, is repeated: outcomes are kept, and none comes twice', async () => {
    const published: number[] = []
    const acts = (offset: number): Act[] => (published.indexOf(offset) % 3 === 0 ? ['bad', 'ok'] : ['ok'])
    const endpoint = createScriptedEndpoint(ports.clock, (_id, offset) => acts(offset))
    await world.webhook({ scheduleMs: [0, 0] })
    const member = startMember({
      name: 'one',
      db: world.db,
      delivery: endpoint.deliveryFor('one'),
      settings: { flushMs: 10 },
    })
    world.onClose(() => member.stop())
    for (let round = 0; round < 3; round++) {
      if (round !== 1) member.loseNextFlush()
      if (round !== 0) member.refuseNextFlush()
      published.push(...(await world.publish(['k', 'k', 'k'])))
      member.wake('all')
      await world.until<{ n: number }>(
        `select ((select count(*) from millrace.deliveries) + (select count(*) from millrace.webhooks
         where lease_token is not null or "offset" < ${published.at(-1)}))::integer as n`,
        ([one]) => one?.n === 0,
      )
    }
    const arrivals = endpoint.history.map(({ offset }) => published.indexOf(offset) + 1)
    expect(arrivals).toEqual([1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9])
  })
})
