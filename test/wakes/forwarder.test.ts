import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { createHarness, eventually, notification, soon, take, type Harness } from './support/harness.ts'

let harness: Harness
beforeEach(async () => {
  harness = await createHarness()
})
afterEach(() => harness.close())

async function send(channel: string, payload: string): Promise<void> {
  await harness.outside.query('select pg_catalog.pg_notify($1, $2)', [channel, payload])
}

/** What the database says is listened to on the forwarder's session. */
async function standing(): Promise<unknown[]> {
  const rows = await harness.connections[0]!.query(
    'select pg_catalog.pg_listening_channels() as c order by 1',
  )
  return rows.map((row) => row.c)
}

describe('a forwarder', () => {
  it('brings what another program sends, whatever the channel is called', async () => {
    const forwarder = harness.forwarder()
    const channels = ['orders', 'Orders', 'a "quoted"; name', 'grüße-€', 'x'.repeat(63)]
    const listeners = channels.map((channel) => forwarder.listen(channel))
    forwarder.start()
    await forwarder.waitFor('listening')
    for (const channel of channels) await send(channel, `to ${channel}`)
    for (const [index, channel] of channels.entries()) {
      expect(await take(listeners[index]!, 1)).toEqual([notification(channel, `to ${channel}`)])
    }
  })

  it('listens to a channel from `ready` on', async () => {
    const forwarder = harness.forwarder()
    forwarder.start()
    await forwarder.waitFor('listening')
    for (let n = 0; n < 20; n++) {
      const listener = forwarder.listen(`c${n}`)
      await soon(listener.ready, 'ready')
      await send(`c${n}`, 'first')
      expect(await take(listener, 1)).toEqual([notification(`c${n}`, 'first')])
    }
  })

  it('wakes those whom a stream or a queue concerns', async () => {
    const forwarder = harness.forwarder()
    forwarder.start()
    await forwarder.waitFor('listening')
    const [one, two, all] = [['s1'], ['q1'], 'all'] as const
    const signals = [one, two, all].map((filter) => forwarder.subscribeWakes(filter))
    await send('millrace.wake', 'q1')
    expect(await soon(signals[1]!.wait(), 'q1')).toBe('wake')
    expect(await soon(signals[2]!.wait(), 'all')).toBe('wake')
    expect(signals[0]!.take()).toBe(false)
    await send('millrace.wake', 'nonsense')
    await send('millrace.wake', 's1')
    expect(await soon(signals[0]!.wait(), 's1')).toBe('wake')
    expect(signals[1]!.take()).toBe(false)
  })

  it('S6: raises the flag of who subscribed before the LISTEN stood', async () => {
    const forwarder = harness.forwarder()
    const wake = forwarder.subscribeWakes(['s1'])
    expect(wake.take()).toBe(false)
    forwarder.start()
    await forwarder.waitFor('listening')
    expect(await soon(wake.wait(), 'a wake')).toBe('wake')
  })

  it('raises flags on word from elsewhere', async () => {
    const forwarder = harness.forwarder()
    const wake = forwarder.subscribeWakes(['s9'])
    forwarder.ring('s8')
    expect(wake.take()).toBe(false)
    forwarder.ring('s9')
    expect(wake.take()).toBe(true)
  })

  it('refuses the channel that is its own, and names that Postgres would cut', () => {
    const forwarder = harness.forwarder()
    for (const channel of ['millrace.wake', '', 'x'.repeat(64), 'ü'.repeat(32), 'a\0b', '\ud800']) {
      expect(() => forwarder.listen(channel)).toThrow(expect.objectContaining({ code: 'INVALID_NAME' }))
    }
  })

  it('answers a query that is made before anyone listens to the connection', async () => {
    let early: unknown
    const forwarder = harness.forwarder({
      connect: async (signal) => {
        const connection = await harness.connect(signal)
        early = await soon(connection.query('select 1 as one'), 'the early query')
        return connection
      },
    })
    forwarder.start()
    await forwarder.waitFor('listening')
    expect(early).toEqual([{ one: 1 }])
  })
})

describe('the channels of the connection', () => {
  it('are let go with their last listener', async () => {
    const forwarder = harness.forwarder()
    const [first, second, other] = ['c', 'c', 'd'].map((channel) => forwarder.listen(channel))
    forwarder.start()
    await forwarder.waitFor('listening')
    expect(await standing()).toEqual(['c', 'd', 'millrace.wake'])
    first!.close()
    other!.close()
    await eventually(async () => expect(await standing()).toEqual(['c', 'millrace.wake']))
    await second!.return!()
    await eventually(async () => expect(await standing()).toEqual(['millrace.wake']))

    const again = forwarder.listen('d')
    await soon(again.ready, 'ready')
    await send('d', 'again')
    expect(await take(again, 1)).toEqual([notification('d', 'again')])
    expect(harness.scripts).toEqual([
      'LISTEN "millrace.wake"',
      'LISTEN "c"; LISTEN "d"',
      'UNLISTEN "d"',
      'UNLISTEN "c"',
      'LISTEN "d"',
    ])
  })

  it('end up as wanted, however fast listeners come and go', async () => {
    const forwarder = harness.forwarder()
    forwarder.start()
    await forwarder.waitFor('listening')
    for (let round = 0; round < 50; round++) {
      const listeners = Array.from({ length: 10 }, (_, n) => forwarder.listen(`c${n}`))
      if (round % 7 === 0) await soon(listeners[3]!.ready, 'ready')
      if (round < 49) for (const listener of listeners) listener.close()
      else for (const listener of listeners.slice(5)) listener.close()
    }
    await eventually(async () =>
      expect(await standing()).toEqual(['c0', 'c1', 'c2', 'c3', 'c4', 'millrace.wake']),
    )
    expect(harness.connections).toHaveLength(2)
  })

  it('end with the reason when the database refuses one, and leave the others alone', async () => {
    const name = `${inject('databasePrefix')}latin`
    await harness.outside.query(`create database ${name} template template0 encoding 'LATIN1' locale 'C'`)
    const url = new URL(harness.url)
    url.pathname = `/${name}`
    const db = createNodePostgresDb({ url: url.href })
    const forwarder = harness.forwarder({ connect: (signal) => db.connectDirect({ signal }) })
    try {
      const good = forwarder.listen('grüße')
      const bad = forwarder.listen('日本')
      forwarder.start()
      await forwarder.waitFor('listening')
      await expect(soon(bad.ready, 'a refusal')).rejects.toMatchObject({ details: { sqlState: '22P05' } })
      await expect(bad.next()).rejects.toMatchObject({ details: { sqlState: '22P05' } })
      await soon(good.ready, 'ready')
      const late = forwarder.listen('日本')
      await expect(soon(late.ready, 'a refusal')).rejects.toMatchObject({ details: { sqlState: '22P05' } })
      expect(forwarder.mode).toBe('listening')
    } finally {
      await forwarder.close()
      await db.close()
      await harness.outside.query(`drop database ${name} with (force)`)
    }
  })

  it('1,000 subscribers of 100 streams and 100 listeners share one connection, and hear only what concerns them', async () => {
    const forwarder = harness.forwarder()
    forwarder.start()
    await forwarder.waitFor('listening')
    const listeners = Array.from({ length: 100 }, (_, n) => forwarder.listen(`c${n}`))
    const signals = Array.from({ length: 1000 }, (_, n) => forwarder.subscribeWakes([`s${n % 100}`]))
    await Promise.all(listeners.map((listener) => listener.ready))
    // the second session of the self-test is on its way out
    await eventually(async () => expect(await harness.sessions()).toBe(1))
    for (let n = 0; n < 1000; n++) await send('millrace.wake', 's42')
    await send('c7', 'last')
    expect(await take(listeners[7]!, 1)).toEqual([notification('c7', 'last')])
    const woken = signals.flatMap((signal, n) => (signal.take() ? [n] : []))
    expect(woken).toEqual([42, 142, 242, 342, 442, 542, 642, 742, 842, 942])
    expect(signals.some((signal) => signal.take())).toBe(false)
  })
})

describe('a slow listener', () => {
  it('N3: is told the number it missed by the database, while a fast one misses nothing', async () => {
    const forwarder = harness.forwarder()
    const slow = forwarder.listen('c', { buffer: 100 })
    const fast = forwarder.listen('c')
    forwarder.start()
    await forwarder.waitFor('listening')
    await harness.outside.query(
      `select pg_catalog.pg_notify('c', n::text) from pg_catalog.generate_series(1, 1000) n`,
    )
    const all = await take(fast, 1000)
    expect(all).toEqual(Array.from({ length: 1000 }, (_, n) => notification('c', String(n + 1))))
    expect(await take(slow, 1)).toEqual([{ kind: 'lagged', missed: 900 }])
    expect(await take(slow, 100)).toEqual(all.slice(900))
  })
})
