import pg from 'pg'
import { Webhook } from 'standardwebhooks'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/system-ports.ts'
import { claimWebhooks } from '../../src/webhooks/engine/claim-webhooks.ts'
import { rotateSecret } from '../../src/webhooks/operations/rotate-secret.ts'
import { seekWebhook } from '../../src/webhooks/operations/seek-webhook.ts'
import { verifyWebhook } from '../../src/webhooks/verify.ts'
import { createGate, type ReceivedRequest } from '../support/receiver.ts'
import { heldUp } from './support/held-up.ts'
import { createWorld, offsetOf, type World } from './support/world.ts'

const rules = { sealer: null, clock: systemClock }
/** Longer than any test: what is claimed once would stay claimed. */
const engine = { lingerMs: 600_000, spillAfterMs: 50 }

describe('rotation of a secret', () => {
  let world: World
  beforeEach(async () => {
    world = await createWorld()
  })
  afterEach(() => world.close())

  /** Publishes one event, and returns its request. */
  async function sent(key: string | null = null): Promise<ReceivedRequest> {
    const [offset] = await world.publish([key])
    const is = ({ headers }: ReceivedRequest): boolean => String(headers['webhook-id']).endsWith(`_${offset}`)
    const requests = await world.receiver.waitFor((all) => all.some(is), 20_000)
    return requests.find(is)!
  }

  /** Which of the secrets have signed. */
  async function signers(request: ReceivedRequest, secrets: readonly string[]): Promise<string[]> {
    const found: string[] = []
    for (const secret of secrets) {
      const verified = await verifyWebhook({ secret, headers: request.headers, body: request.body }).catch(
        () => null,
      )
      if (verified !== null) found.push(secret)
    }
    return found
  }

  const signatures = ({ headers }: ReceivedRequest): number =>
    String(headers['webhook-signature']).split(' ').length

  it('without overlap revokes the old one at once, also where a worker keeps its lease', async () => {
    const { id, secret: old } = await world.webhook()
    world.start({ engine })
    expect(await signers(await sent(), [old])).toEqual([old])
    const { secret } = await rotateSecret(world.db, id, { overlapMs: 0 }, rules)
    for (let times = 0; times < 3; times++) {
      const request = await sent()
      expect(await signers(request, [old, secret])).toEqual([secret])
      expect(signatures(request)).toBe(1)
    }
  })

  it('lets both sign within the overlap, and only the new one after it, under steady traffic', async () => {
    const { id, secret: old } = await world.webhook()
    world.start({ engine })
    await sent()
    const { secret, overlapUntil } = await rotateSecret(world.db, id, { overlapMs: 5_000 }, rules)
    const first = await sent()
    if (Date.parse(overlapUntil) > Date.now()) {
      expect(await signers(first, [old, secret])).toEqual([old, secret])
    }
    while (Date.now() <= Date.parse(overlapUntil) + 1) await sent()
    expect(await signers(await sent(), [old, secret])).toEqual([secret])
  })

  it('is not held up by what hangs: others are signed anew meanwhile, and that one when it is sent again (W4)', async () => {
    const { id, secret: old } = await world.webhook()
    const gate = createGate()
    world.onClose(() => gate.open())
    let hangs = true
    world.receiver.answer(({ body }) => (hangs && body.includes('"n":0') ? { until: gate.opened } : {}))
    world.start({ engine })
    const hanging = await sent('slow')
    const { secret } = await rotateSecret(world.db, id, { overlapMs: 0 }, rules)
    hangs = false
    const other = await sent('other')
    expect(await signers(other, [old, secret])).toEqual([secret])
    const again = ({ index, headers }: ReceivedRequest): boolean =>
      index !== hanging.index && headers['webhook-id'] === hanging.headers['webhook-id']
    const requests = await world.receiver.waitFor((all) => all.some(again), 20_000)
    expect(await signers(requests.find(again)!, [old, secret])).toEqual([secret])
    await world.until<{ offset: string }>('select "offset"::text from millrace.webhooks', (rows) =>
      rows.every(({ offset }) => Number(offset) >= offsetOf(other)),
    )
  })

  it('counts for a claim that began before it', async () => {
    const { id } = await world.webhook()
    await world.publish(['k'])
    const request = { scope: { kind: 'all' }, leaseMs: 30_000, limit: 10, environment: null } as const
    const claim = (db = world.db) => claimWebhooks(db, { ...request, token: crypto.randomUUID() })
    const overtaken = await heldUp(world, claim, () => rotateSecret(world.db, id, { overlapMs: 0 }, rules))
    expect(overtaken.webhooks).toEqual([])
    const { webhooks } = await claim()
    expect(webhooks[0]!.secrets).toHaveLength(1)
  })

  it('leaves one current secret, however many rotate at once', async () => {
    const { id } = await world.webhook()
    const client = new pg.Client({ connectionString: world.url })
    await client.connect()
    world.onClose(() => client.end())
    await client.query('begin')
    await client.query('select from millrace.webhooks for update')
    const rotate = () => rotateSecret(world.db, id, {}, rules)
    const rotating = [rotate(), rotate()]
    await world.until(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      (waiting) => waiting.length === 2,
    )
    await client.query('commit')
    const rotated = await Promise.all(rotating)
    const current = 'select sealed from millrace.webhook_secrets where expires_at is null'
    const rows = await world.sql<{ sealed: string }>(current)
    expect(rows).toHaveLength(1)
    expect(rotated.map(({ secret }) => secret)).toContain(rows[0]!.sealed)
  })

  it('thirty times leaves what ours and the independent verifier take, the youngest secrets only', async () => {
    const { id, secret: first } = await world.webhook()
    const secrets = [first]
    for (let times = 0; times < 30; times++) {
      secrets.push((await rotateSecret(world.db, id, {}, rules)).secret)
    }
    world.start({ engine })
    const request = await sent()
    expect(await signers(request, secrets)).toEqual(secrets.slice(-8))
    expect(signatures(request)).toBe(8)
    for (const secret of secrets.slice(-8)) {
      const headers = request.headers as Record<string, string>
      expect(new Webhook(secret).verify(request.body, headers)).toBeTruthy()
    }
    const rows = await world.sql('select from millrace.webhook_secrets')
    expect(rows).toHaveLength(8)
  })
})

describe('a seek', () => {
  let world: World
  beforeEach(async () => {
    world = await createWorld()
  })
  afterEach(() => world.close())

  it('back counts for a claim that began before it: what it forgets is delivered again (W1)', async () => {
    const { id } = await world.webhook()
    await world.publish(['k', 'k'])
    await world.sql(
      `insert into millrace.deliveries (webhook_id, "offset", unit, state) values ($1, 1, 'k', 'dead')`,
      [id],
    )
    await world.sql('update millrace.webhooks set "offset" = 1')
    const request = { scope: { kind: 'all' }, leaseMs: 30_000, limit: 10, environment: null } as const
    const claim = (db = world.db) => claimWebhooks(db, { ...request, token: crypto.randomUUID() })
    const overtaken = await heldUp(world, claim, () => seekWebhook(world.db, id, { offset: 0 }))
    expect(overtaken.webhooks).toEqual([])
    const { webhooks } = await claim()
    expect(webhooks).toMatchObject([{ offset: 0, recorded: [] }])
  })
})
