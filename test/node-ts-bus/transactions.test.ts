import { handlerFor } from '@node-ts/bus-core'
import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { DrizzlePg } from '../../src/db/port.ts'
import { runQuery } from '../../src/db/run.ts'
import type { MillraceTransport } from '../../src/node-ts-bus/transport.ts'
import { bindQueue } from '../../src/queues/topics.ts'
import { topicOf } from '../../src/node-ts-bus/topic-name.ts'
import {
  createTransport,
  Happened,
  keepLog,
  Numbered,
  openBus,
  openDrivers,
  openServer,
  read,
  type OpenedDb,
  type OpenedServer,
} from './support.ts'

const patience = { timeout: 20_000 }
const startMs = 180_000

describe.each(openDrivers)('handling in a transaction on $name', ({ open, sessions }) => {
  let opened: OpenedDb
  beforeAll(async () => {
    opened = await open()
    await opened.db.drizzle.execute(sql`create table public.effects (number int)`)
  }, startMs)
  beforeEach(async () => {
    await opened.db.drizzle.execute(sql`delete from public.effects`)
    await opened.db.drizzle.execute(sql`delete from millrace.messages`)
    // or what one test sends would go to the queues of those before, too
    await opened.db.drizzle.execute(sql`delete from millrace.topic_bindings`)
    await opened.db.drizzle.execute(sql`delete from millrace.dead_letters`)
    await bindQueue(opened.db, { topic: topicOf(Happened.NAME), queue: 'audit' })
  })
  afterAll(async () => {
    await opened.db.close()
    await opened.close()
  })

  /** How many rows the handler has written, and how many events it has published, as seen from outside. */
  async function outcome(): Promise<{ effects: number; events: number; left: number }> {
    const [row] = await runQuery<{ effects: number; events: number; left: number }>(
      opened.db,
      sql`select (select count(*)::int from public.effects) as effects,
        count(*) filter (where q.name = 'audit')::int as events,
        count(*) filter (where q.name <> 'audit')::int as left
        from millrace.messages m join millrace.queues q on q.id = m.queue_id`,
    )
    return row!
  }
  const until = (wanted: Awaited<ReturnType<typeof outcome>>) =>
    vi.waitFor(async () => expect(await outcome()).toEqual(wanted), patience)

  /** A bus whose handler writes, publishes, and then does what the test says. */
  async function working(
    queue: string,
    then: (transport: MillraceTransport, bus: { failMessage(): Promise<void> }) => Promise<void> | void,
    options: { maxAttempts?: number } = {},
  ) {
    const log = keepLog()
    const transport = createTransport(opened.db, queue, options)
    const bus = await openBus({
      transport,
      log,
      configure: (bus) =>
        bus
          .withMessageReadMiddleware(transport.transactional())
          .withRetryStrategy({ calculateRetryDelay: () => 0 })
          .withHandler(
            handlerFor(Numbered, async ({ number }) => {
              const tx = transport.currentTransaction<DrizzlePg>()!
              await tx.execute(sql`insert into public.effects values (${number})`)
              await publish(number)
              await then(transport, { failMessage: () => failMessage() })
            }),
          ),
    })
    const publish = (number: number): Promise<void> => bus.publish(new Happened(number))
    const failMessage = (): Promise<void> => bus.failMessage()
    return { transport, bus, log }
  }

  it('commits its writes, what it sends and the end of its message together', async () => {
    const { bus, log } = await working('together', () => {})
    for (const number of [1, 2, 3]) await bus.send(new Numbered(number))
    await until({ effects: 3, events: 3, left: 0 })
    expect(log.warnings).toEqual([])
  })

  it('leaves nothing of an attempt that fails', async () => {
    let attempts = 0
    const { bus } = await working('failing', () => {
      if (++attempts < 3) throw new Error(`attempt ${attempts}`)
    })
    await bus.send(new Numbered(1))
    await until({ effects: 1, events: 1, left: 0 })
    expect(attempts).toBe(3)
  })

  it('keeps the last error of a message that dies', async () => {
    const { bus, transport } = await working(
      'dying',
      () => {
        throw new TypeError('never works')
      },
      { maxAttempts: 2 },
    )
    await bus.send(new Numbered(1))
    await vi.waitFor(
      async () =>
        expect(await transport.deadLetters()).toMatchObject([
          { attempts: 2, failure: { reason: 'TypeError: never works' } },
        ]),
      patience,
    )
    expect(await outcome()).toEqual({ effects: 0, events: 0, left: 0 })
  })

  it('fails a message together with what was written', async () => {
    const { bus, transport, log } = await working('given-up', (_, bus) => bus.failMessage())
    await bus.send(new Numbered(1))
    await until({ effects: 1, events: 1, left: 0 })
    expect(await transport.deadLetters()).toMatchObject([{ attempts: 1 }])
    expect(log.warnings).toEqual([])
  })

  it('fails a message also where its transaction rolled back after that', async () => {
    const { bus, transport } = await working('given-up-twice', async (_, bus) => {
      await bus.failMessage()
      throw new Error('after all')
    })
    await bus.send(new Numbered(1))
    await vi.waitFor(async () => expect(await transport.deadLetters()).toHaveLength(1), patience)
    expect(await transport.deadLetters()).toMatchObject([{ attempts: 1 }])
    expect(await outcome()).toEqual({ effects: 0, events: 0, left: 0 })
  })

  it.runIf(sessions)('counts for nothing where the lease was lost meanwhile (Q1)', async () => {
    let attempts = 0
    const { bus, log } = await working('overtaken', async () => {
      if (++attempts > 1) return
      // as if another had claimed it since, and had stopped
      await opened.db.drizzle.execute(
        sql`update millrace.messages set lease_token = gen_random_uuid(), due_at = now() where lease_token is not null`,
      )
    })
    await bus.send(new Numbered(1))
    await until({ effects: 1, events: 1, left: 0 })
    expect(attempts).toBe(2)
    expect(log.warnings).toContain('The lease of a message was lost: nothing was settled.')
  })

  it.runIf(sessions)('is done again where the connection dies at the commit', async () => {
    let attempts = 0
    const { bus } = await working('cut', async (transport) => {
      const on = { ...opened.db, drizzle: transport.currentTransaction<DrizzlePg>()! }
      const [{ pid } = { pid: 0 }] = await runQuery<{ pid: number }>(
        on,
        sql`select pg_catalog.pg_backend_pid() as pid`,
      )
      if (++attempts > 1) return
      await opened.db.drizzle.execute(sql`select pg_catalog.pg_terminate_backend(${pid}::int)`)
    })
    await bus.send(new Numbered(1))
    await until({ effects: 1, events: 1, left: 0 })
    expect(attempts).toBe(2)
  })

  it('sends in a transaction of the caller outside of handlers, if and only if it commits (Q3)', async () => {
    const transport = createTransport(opened.db, 'outbox')
    const bus = await openBus({ transport, start: false, configure: (bus) => bus.asSendOnly() })
    const order = (fails: boolean) =>
      opened.db.transaction((tx) =>
        transport.withTransaction(tx.drizzle, async () => {
          await tx.drizzle.execute(sql`insert into public.effects values (1)`)
          await Promise.all([bus.publish(new Happened(1)), bus.publish(new Happened(2))])
          if (fails) throw new Error('no order')
        }),
      )
    await expect(order(true)).rejects.toThrow('no order')
    expect(await outcome()).toEqual({ effects: 0, events: 0, left: 0 })
    await order(false)
    expect(await outcome()).toEqual({ effects: 1, events: 2, left: 0 })
    expect(transport.currentTransaction()).toBeUndefined()
    // and outside again
    await bus.publish(new Happened(3))
    expect(await outcome()).toEqual({ effects: 1, events: 3, left: 0 })
  })
})

describe('a transaction on a bare client', () => {
  let server: OpenedServer
  beforeAll(async () => {
    server = await openServer()
    await server.pool.query('create table public.effects (number int)')
  })
  afterAll(() => server.close())

  it('carries handling, sending and settling too', async () => {
    const transport = createTransport(server.db, 'bare')
    await openBus({ transport, start: false, configure: (bus) => bus })
    await transport.start()
    await transport.sendToAddress('bare', new Numbered(1))
    const message = await read(transport)
    const inTransaction = async (end: 'commit' | 'rollback'): Promise<void> => {
      const client = await server.pool.connect()
      try {
        await client.query('begin')
        await transport.withTransaction(client, async () => {
          await client.query('insert into public.effects values (1)')
          await transport.sendToAddress('bare', new Numbered(2))
          await transport.deleteMessage(message)
        })
        await client.query(end)
      } finally {
        client.release()
      }
    }
    const numbers = async (): Promise<unknown[]> => {
      const { rows } = await server.pool.query('select data from millrace.messages order by id')
      return rows.map(({ data }) => data.number)
    }
    await inTransaction('rollback')
    expect(await numbers()).toEqual([1])
    await inTransaction('commit')
    expect(await numbers()).toEqual([2])
    const { rows } = await server.pool.query('select number from public.effects')
    expect(rows).toEqual([{ number: 1 }])
    await transport.deleteMessage(await read(transport))
  })

  it('is what a middleware of the user begins, where it says so', async () => {
    const transport = createTransport(server.db, 'own')
    const begun = { count: 0, committed: 0 }
    const bus = await openBus({
      transport,
      configure: (bus) =>
        bus
          .withMessageReadMiddleware(
            transport.transactional(async (work) => {
              const client = await server.pool.connect()
              begun.count++
              try {
                await client.query('begin')
                await work(client)
                await client.query('commit')
                begun.committed++
              } catch (error) {
                await client.query('rollback')
                throw error
              } finally {
                client.release()
              }
            }),
          )
          .withRetryStrategy({ calculateRetryDelay: () => 0 })
          .withHandler(
            handlerFor(Numbered, () => {
              if (begun.count === 1) throw new Error('once')
            }),
          ),
    })
    await bus.send(new Numbered(1))
    await vi.waitFor(() => expect(begun).toEqual({ count: 2, committed: 1 }), patience)
  })
})
