import { handlerFor, type BusConfiguration } from '@node-ts/bus-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { createMillrace } from '../../src/millrace.ts'
import { MillraceTransport, type MillraceTransportOptions } from '../../src/node-ts-bus/transport.ts'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { spyOn } from '../queues/spied-db.ts'
import {
  countMessages,
  createTransport,
  keepLog,
  Numbered,
  openBus,
  openServer,
  read,
  type OpenedServer,
} from './support.ts'

const patience = { timeout: 20_000 }

let server: OpenedServer
beforeAll(async () => {
  server = await openServer()
})
afterAll(() => server.close())

const handling =
  (seen: number[]) =>
  (bus: BusConfiguration): BusConfiguration =>
    bus.withHandler(handlerFor(Numbered, ({ number }) => void seen.push(number)))

/** A transport that is initialized by a bus which does not read by itself. */
async function initialized(
  queue: string,
  options: Partial<Omit<MillraceTransportOptions, 'db' | 'millrace'>> = {},
): Promise<MillraceTransport> {
  const transport = createTransport(server.db, queue, options)
  await openBus({ transport, start: false, configure: (bus) => bus })
  return transport
}

/** Keeps every claim waiting, from now until the returned function is called. */
async function holdClaims(): Promise<() => Promise<void>> {
  const client = await server.pool.connect()
  await client.query('begin; lock table millrace.queues in access exclusive mode')
  return async () => {
    await client.query('rollback')
    client.release()
  }
}

async function untilClaimWaits(): Promise<void> {
  await vi.waitFor(async () => {
    const { rows } = await server.pool.query(
      `select 1 from pg_catalog.pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%claim_messages%'`,
    )
    expect(rows).toHaveLength(1)
  }, patience)
}

describe('the life of a bus transport', () => {
  it('stops, keeps what comes meanwhile, and works again after another start', async () => {
    const seen: number[] = []
    const bus = await openBus({
      transport: createTransport(server.db, 'again'),
      configure: handling(seen),
    })
    for (const number of [1, 3, 5]) {
      await bus.send(new Numbered(number))
      await vi.waitFor(() => expect(seen).toEqual([...seen.slice(0, -1), number]), patience)
      await bus.stop()
      await bus.send(new Numbered(number + 1))
      expect(await countMessages(server.pool, 'again')).toBe(1)
      await bus.start()
      await vi.waitFor(() => expect(seen.at(-1)).toBe(number + 1), patience)
    }
    expect(seen).toEqual([1, 2, 3, 4, 5, 6])
  })

  it('blocks in a read until there is a message, and releases all of them when it stops', async () => {
    const transport = await initialized('blocked')
    await transport.start()
    const reads = Array.from({ length: 3 }, () => transport.readNextMessage())
    await transport.sendToAddress('blocked', new Numbered(1))
    const first = await Promise.race(reads)
    expect(first?.domainMessage).toEqual({ ...new Numbered(1) })
    await transport.stop()
    expect((await Promise.all(reads)).filter((message) => message !== undefined)).toEqual([first])
    expect(await transport.readNextMessage()).toBeUndefined()

    // settling can come after stop
    await transport.deleteMessage(first!)
    expect(await countMessages(server.pool, 'blocked')).toBe(0)
    await transport.stop()
  })

  it('does not hang in a stop while a claim that finds nothing is in flight', async () => {
    const transport = await initialized('in-flight')
    const release = await holdClaims()
    await transport.start()
    const reading = transport.readNextMessage()
    await untilClaimWaits()
    const stopping = transport.stop()
    expect(await reading).toBeUndefined()
    await release()
    await stopping
    await transport.start()
    await transport.sendToAddress('in-flight', new Numbered(1))
    await transport.deleteMessage(await read(transport))
  })

  it('does not wait for a claim that never ends, nor lose what it claims in the end', async () => {
    const transport = await initialized('endless')
    await transport.sendToAddress('endless', new Numbered(1))
    const release = await holdClaims()
    await transport.start()
    const reading = transport.readNextMessage()
    await untilClaimWaits()
    await transport.stop()
    expect(await reading).toBeUndefined()
    await release()
    await transport.start()
    // its attempt does not count, for nobody saw the message
    const message = await read(transport)
    expect(message.raw.failedAttempts).toBe(0)
    await transport.deleteMessage(message)
  }, 60_000)

  it('makes one query a poll while idle, however many loops wait', async () => {
    const spied = spyOn(server.db)
    const transport = new MillraceTransport({
      millrace: createMillrace({ db: spied.db, listen: false, pollMinMs: 50, pollMaxMs: 50 }),
      queueName: 'idle',
      pollMinMs: 50,
      pollMaxMs: 50,
    })
    await openBus({ transport, configure: (bus) => bus.withConcurrency(20) })
    await spied.waitForCalls('claim_messages', 2)
    const begun = Date.now()
    await spied.waitForCalls('claim_messages', 12)
    // ten polls, each 40 to 50 ms after the last
    expect(Date.now() - begun).toBeGreaterThan(300)
  })

  it('closes a database of its own when it is disposed, and not before', async () => {
    const transport = new MillraceTransport({
      db: createNodePostgresDb({ url: server.url, applicationName: 'owned' }),
      queueName: 'owned',
    })
    const sessions = async (): Promise<number> => {
      const { rows } = await server.pool.query(
        `select 1 from pg_catalog.pg_stat_activity where application_name = 'owned'`,
      )
      return rows.length
    }
    const bus = await openBus({ transport, configure: (bus) => bus })
    await transport.sendToAddress('owned', new Numbered(1))
    await bus.stop()
    expect(await sessions()).toBeGreaterThan(0)
    await transport.disconnect()
    await vi.waitFor(async () => expect(await sessions()).toBe(0), patience)
    await transport.dispose()
  })

  it('shares a store, and leaves it open', async () => {
    const millrace = createMillrace({ db: createNodePostgresDb({ url: server.url }) })
    onTestFinished(() => millrace.close())
    const seen: number[] = []
    const transport = new MillraceTransport({ millrace, queueName: 'shared' })
    const bus = await openBus({ transport, configure: handling(seen) })
    await bus.send(new Numbered(1))
    await vi.waitFor(() => expect(seen).toEqual([1]), patience)
    await bus.stop()
    await transport.dispose()
    expect(await millrace.queue('shared').stats()).toMatchObject({ ready: 0 })
    expect(millrace.forwarder.mode).not.toBe('closed')
  })

  it('fails at once where the database cannot be reached', async () => {
    const url = server.url.replace(/\/[^/]*$/, '/no_such_database')
    const transport = new MillraceTransport({ db: createNodePostgresDb({ url }), queueName: 'lost' })
    await expect(
      openBus({ transport, log: keepLog(), configure: (bus) => bus.asSendOnly() }),
    ).rejects.toMatchObject({ name: 'MillraceError' })
  })

  it.each([
    ['leaseMs', 0],
    ['maxHandlingMs', -1],
    ['maxAttempts', 0],
    ['pollMinMs', 0],
    ['pollMaxMs', Number.NaN],
  ])('refuses %s %s when it is made', (field, value) => {
    const wrong = (): unknown => createTransport(server.db, 'wrong', { [field]: value })
    expect(wrong).toThrow(expect.objectContaining({ code: 'INVALID_INPUT', details: { field } }))
  })

  it('refuses polls whose doubling would go down', () => {
    const invalid = expect.objectContaining({ code: 'INVALID_INPUT', details: { field: 'pollMinMs' } })
    for (const polls of [{ pollMinMs: 5000, pollMaxMs: 10 }, { pollMinMs: 60_001 }, { pollMaxMs: 999 }]) {
      expect(() => createTransport(server.db, 'wrong', polls)).toThrow(invalid)
      expect(() => createMillrace({ db: server.db, ...polls })).toThrow(invalid)
    }
  })

  it('refuses a queue that has no legal name, and a database too few or too many', () => {
    expect(() => createTransport(server.db, '@no')).toThrow(expect.objectContaining({ code: 'INVALID_NAME' }))
    const neither = { queueName: 'q' } as MillraceTransportOptions
    expect(() => new MillraceTransport(neither)).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }))
  })
})
