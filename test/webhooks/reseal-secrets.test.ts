import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { run } from '../cli/support/run.ts'
import { createWorld, type World } from '../delivery/support/world.ts'
import { createWebhook } from '../../src/webhooks/create-webhook.ts'
import { rotateSecret } from '../../src/webhooks/operations/rotate-secret.ts'
import { resealSecrets } from '../../src/webhooks/reseal-secrets.ts'
import { systemClock } from '../../src/system-ports.ts'
import { createSealer, type Sealer } from '../../src/webhooks/seal.ts'
import { openSecret } from '../../src/webhooks/stored-secret.ts'
import { verifyWebhook } from '../../src/webhooks/verify.ts'

const [oldKey, newKey] = ['the first key is long enough', 'the second key is long enough']

describe('changing the master key', () => {
  let world: World
  beforeEach(async () => {
    world = await createWorld()
  })
  afterEach(() => world.close())

  interface Stored {
    webhook_id: string
    sealed: string
  }
  const stored = () =>
    world.sql<Stored>('select webhook_id, sealed from millrace.webhook_secrets order by id')
  const make = async (sealer: Sealer | null) =>
    createWebhook(
      world.db,
      { stream: 'orders', url: `${world.receiver.url}/`, from: 'start' },
      { sealer, policy: { allowInsecure: true } },
    )
  const opened = async (sealer: Sealer) =>
    Promise.all((await stored()).map(({ sealed, webhook_id }) => openSecret(sealer, sealed, webhook_id)))

  it('seals anew what lies under the old key or in the clear, and the secrets stay the same', async () => {
    const before = await createSealer({ current: oldKey })
    const [a, b, clear] = [await make(before), await make(before), await make(null)]
    const rotated = await rotateSecret(world.db, a.id, {}, { sealer: before, clock: systemClock })
    const both = await createSealer({ current: newKey, previous: [oldKey] })
    expect(await resealSecrets(world.db, both)).toEqual({ resealed: 4, current: 0, unreadable: [] })
    const after = await createSealer({ current: newKey })
    const secrets = [a, b, clear, rotated].map(({ secret }) => secret)
    expect((await opened(after)).toSorted()).toEqual(secrets.toSorted())
    expect(await resealSecrets(world.db, after)).toEqual({ resealed: 0, current: 4, unreadable: [] })
  })

  it('leaves alone what it cannot open, names it, and goes on', async () => {
    const stranger = await make(await createSealer({ current: 'a key nobody remembers' }))
    const known = await make(await createSealer({ current: oldKey }))
    const before = await stored()
    const both = await createSealer({ current: newKey, previous: [oldKey] })
    expect(await resealSecrets(world.db, both)).toEqual({
      resealed: 1,
      current: 0,
      unreadable: [stranger.id],
    })
    const kept = (rows: Stored[]) => rows.find(({ webhook_id }) => webhook_id === stranger.id)
    expect(kept(await stored())).toEqual(kept(before))
    const row = (await stored()).find(({ webhook_id }) => webhook_id === known.id)
    expect(await openSecret(await createSealer({ current: newKey }), row!.sealed, known.id)).toBe(
      known.secret,
    )
  })

  it('goes through more than a step holds', async () => {
    const { id } = await make(null)
    await world.sql(
      `insert into millrace.webhook_secrets (id, webhook_id, sealed)
       select 'extra-' || n, $1, 'whsec_' || n from generate_series(1, 450) n`,
      [id],
    )
    const sealer = await createSealer({ current: newKey })
    expect(await resealSecrets(world.db, sealer)).toEqual({ resealed: 451, current: 0, unreadable: [] })
    expect((await stored()).every(({ sealed }) => !sealer.isStale(sealed))).toBe(true)
  })

  it('does not undo a rotation that comes in between', async () => {
    const before = await createSealer({ current: oldKey })
    await make(before)
    const both = await createSealer({ current: newKey, previous: [oldKey] })
    const seal: Sealer['seal'] = async (text, context) => {
      await world.sql(`update millrace.webhook_secrets set sealed = 'whsec_other'`)
      return both.seal(text, context)
    }
    expect(await resealSecrets(world.db, { ...both, seal })).toMatchObject({ resealed: 0 })
    expect((await stored()).map(({ sealed }) => sealed)).toEqual(['whsec_other'])
  })

  it('is a command, which says what it did and fails when something could not be opened', async () => {
    const { id, secret } = await make(await createSealer({ current: oldKey }))
    const env = { DATABASE_URL: world.url, MILLRACE_ENCRYPTION_KEY: newKey }
    expect(await run(['reseal'], { env: { DATABASE_URL: world.url } })).toMatchObject({
      code: 1,
      err: expect.stringContaining('MILLRACE_ENCRYPTION_KEY is not set'),
    })
    expect(await run(['reseal'], { env })).toMatchObject({ code: 1, err: expect.stringContaining(id) })
    const known = { ...env, MILLRACE_PREVIOUS_ENCRYPTION_KEYS: `another old key of theirs,${oldKey}` }
    const done = await run(['reseal'], { env: known })
    expect([done.code, done.out]).toEqual([0, expect.stringContaining('1 secrets sealed anew')])
    const sealer = await createSealer({ current: newKey })
    expect(await opened(sealer)).toEqual([secret])
    world.start({ sealer })
    await world.publish(['k'])
    const [request] = await world.receiver.waitFor(1, 20_000)
    const { body, headers } = request!
    const verified = verifyWebhook({ body, headers, secrets: [secret] })
    await expect(verified).resolves.toMatchObject({ timestamp: expect.any(Date) })
  })
})
