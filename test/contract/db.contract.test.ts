import { sql } from 'drizzle-orm'
import { describe, expect, it, vi } from 'vitest'
import { textArray } from '../../src/db/array-literal.ts'
import { toDate, toNumber, toNumbers } from '../../src/db/decode.ts'
import { qualified, runQuery, translated } from '../../src/db/run.ts'
import { eventually } from './support/eventually.ts'
import { deferred } from './support/deferred.ts'
import { describeOnEveryDriver } from './drivers.ts'

describeOnEveryDriver('the database port', (given) => {
  describe('values', () => {
    it('come out of raw rows alike, by cast or by decoder', async () => {
      const [row] = await runQuery<Record<string, unknown>>(
        given().db,
        sql`select 9007199254740991::int8 as big, 42::int8::text as cast_big, 7::int4 as small, true as yes,
          null::text as nothing, array[1, 9007199254740991]::int8[] as bigs, '{}'::int8[] as none,
          timestamptz '2026-02-03 04:05:06.789+00' as at`,
      )
      expect(toNumber(row?.big)).toBe(Number.MAX_SAFE_INTEGER)
      expect(row).toMatchObject({ cast_big: '42', small: 7, yes: true, nothing: null })
      expect(toNumbers(row?.bigs)).toEqual([1, Number.MAX_SAFE_INTEGER])
      expect(toNumbers(row?.none)).toEqual([])
      expect(toDate(row?.at)).toEqual(new Date('2026-02-03T04:05:06.789Z'))
    })

    it('of text[] go in and out with quotes, commas, braces, backslashes, nulls and empties', async () => {
      const values = ['plain', '', 'NULL', null, 'a,b', '{x}', '"q"', 'back\\slash', ' pad ', 'é😀\n']
      const rows = await runQuery<{ value: string | null }>(
        given().db,
        sql`select e.value from unnest(${textArray(values)}) with ordinality as e (value, n) order by e.n`,
      )
      expect(rows.map((row) => row.value)).toEqual(values)
    })

    it('come out of builder queries alike, and json text verbatim (S9)', async () => {
      const { db } = given()
      const { events, apiKeys } = db.tables
      const text = '{"b":1, "a":1.10,"b":"\\u0000é"}'
      await translated(
        db.drizzle.insert(events).values({
          streamId: 9_999,
          offset: 2 ** 52,
          type: 't',
          data: text,
          publishedAt: new Date('2026-02-03T04:05:06.789Z'),
        }),
      )
      const rows = await translated(
        db.drizzle
          .select({
            offset: events.offset,
            data: sql<string>`${events.data}::text`,
            at: events.publishedAt,
            key: events.key,
          })
          .from(events),
      )
      expect(rows).toEqual([
        { offset: 2 ** 52, data: text, at: new Date('2026-02-03T04:05:06.789Z'), key: null },
      ])
      await translated(
        db.drizzle.insert(apiKeys).values({ id: 'k', name: 'n', hash: 'h', scopes: ['a', 'b,"c'] }),
      )
      const [key] = await translated(db.drizzle.select().from(apiKeys))
      expect(key).toMatchObject({ scopes: ['a', 'b,"c'], streamPrefix: null })
      expect(key?.createdAt).toBeInstanceOf(Date)
    })
  })

  describe('errors', () => {
    it.each([
      [sql`select 'no'::json`, 'INVALID_JSON', '22P02'],
      [sql`select * from millrace.missing`, 'NOT_MIGRATED', '42P01'],
      [sql`select 1/0`, 'DATABASE_ERROR', '22012'],
      [sql`select ${'secret'}::text::int`, 'INVALID_JSON', '22P02'],
    ])('%# carry the SQLSTATE, and not the statement', async (statement, code, sqlState) => {
      const failure = await runQuery(given().db, statement).catch((error: unknown) => error)
      expect(failure).toMatchObject({ code, details: { sqlState } })
      expect(String(failure)).not.toContain('select')
    })

    it('of a constraint name it, also from the builder', async () => {
      const { db } = given()
      const again = () =>
        translated(db.drizzle.insert(db.tables.installation).values({ singleton: 1, environment: 'x' }))
      await again().catch(() => {})
      await expect(again()).rejects.toMatchObject({
        code: 'DATABASE_ERROR',
        details: { sqlState: '23505', table: 'installation', constraint: 'installation_pkey' },
      })
    })
  })

  it('has one installation row, and its migrations on record', async () => {
    const { db } = given()
    expect(await translated(db.drizzle.select().from(db.tables.installation))).toHaveLength(1)
    const rows = await runQuery<{ name: string }>(
      db,
      sql`select name from ${qualified(db, 'migrations')} order by name`,
    )
    expect(rows[0]).toEqual({ name: '0000_tables' })
  })
})

describeOnEveryDriver(
  'transactions',
  (given) => {
    const countLocks = async (name: string): Promise<number> => {
      const { db } = given()
      const [row] = await runQuery<{ n: string }>(
        db,
        sql`select count(*)::text as n from ${qualified(db, 'streams')} where name = ${name}`,
      )
      return Number(row?.n)
    }

    it('commit when the work resolves, with what it resolved to', async () => {
      const { db } = given()
      const result = await db.transaction(async (tx) => {
        await runQuery(tx, sql`insert into ${qualified(tx, 'streams')} (name) values ('committed')`)
        return 'done'
      })
      expect(result).toBe('done')
      expect(await countLocks('committed')).toBe(1)
    })

    it('roll back when the work rejects, and reject with the same error', async () => {
      const { db } = given()
      const own = new Error('mine')
      const failed = db.transaction(async (tx) => {
        await runQuery(tx, sql`insert into ${qualified(tx, 'streams')} (name) values ('rolled back')`)
        throw own
      })
      await expect(failed).rejects.toBe(own)
      expect(await countLocks('rolled back')).toBe(0)
    })

    it('roll back to a savepoint when only a nested one rejects', async () => {
      const { db } = given()
      await db.transaction(async (tx) => {
        await runQuery(tx, sql`insert into ${qualified(tx, 'streams')} (name) values ('outer')`)
        const nested = tx.drizzle.transaction(async (inner) => {
          const on = { ...tx, drizzle: inner }
          await runQuery(on, sql`insert into ${qualified(on, 'streams')} (name) values ('inner')`)
          throw new Error('inner')
        })
        await expect(nested).rejects.toThrow('inner')
      })
      expect([await countLocks('outer'), await countLocks('inner')]).toEqual([1, 0])
    })

    it('are READ COMMITTED whatever the default is', async () => {
      const [row] = await given().db.transaction((tx) =>
        runQuery(tx, sql`select current_setting('transaction_isolation') as level`),
      )
      expect(row).toEqual({ level: 'read committed' })
    })

    it('translate a failure of COMMIT itself', async () => {
      const { db } = given()
      await runQuery(db, sql`create table public.deferred (id int primary key deferrable initially deferred)`)
      const failed = db.transaction(async (tx) => {
        await runQuery(tx, sql`insert into public.deferred values (1), (1)`)
      })
      await expect(failed).rejects.toMatchObject({ code: 'DATABASE_ERROR', details: { sqlState: '23505' } })
    })
  },
  { needs: ['interactiveTx'] },
)

describeOnEveryDriver(
  'a direct connection',
  (given) => {
    it('LISTENs, hears what others notify, and stops after UNLISTEN', async () => {
      const { db } = given()
      const heard: string[] = []
      const connection = await db.connectDirect()
      connection.onNotification((channel, payload) => heard.push(`${channel}=${payload}`))
      await connection.execute('LISTEN "a.b"; LISTEN "C ""q"""; LISTEN plain')
      await runQuery(
        db,
        sql`select pg_notify('a.b', '1'), pg_notify('C "q"', ''), pg_notify('plain', '3'), pg_notify('other', '4')`,
      )
      await eventually(() => expect(heard).toEqual(['a.b=1', 'C "q"=', 'plain=3']))
      await connection.execute('UNLISTEN "a.b"')
      await runQuery(db, sql`select pg_notify('a.b', '5'), pg_notify('plain', '6')`)
      await eventually(() => expect(heard.slice(3)).toEqual(['plain=6']))
      await connection.close()
    })

    it('hears nothing that another one listens to (N3)', async () => {
      const { db } = given()
      const heard: string[] = []
      const [one, other] = [await db.connectDirect(), await db.connectDirect()]
      one.onNotification((channel) => heard.push(`one ${channel}`))
      other.onNotification((channel) => heard.push(`other ${channel}`))
      await one.query('LISTEN shared')
      await other.execute('LISTEN shared; LISTEN mine')
      await one.query('UNLISTEN shared')
      await runQuery(db, sql`select pg_notify('shared', ''), pg_notify('mine', '')`)
      await eventually(() => expect(heard).toEqual(['other shared', 'other mine']))
      await Promise.all([one.close(), other.close()])
    })

    it('takes parameters, answers in order, and translates errors', async () => {
      const connection = await given().db.connectDirect()
      const answers = await Promise.all([
        connection.query('select $1::text as a, $2::text as b', ['x', null]),
        connection.query('select 1/0').catch((error: { code: string }) => error.code),
        connection.query(`select 'y' as a`),
      ])
      expect(answers).toEqual([[{ a: 'x', b: null }], 'DATABASE_ERROR', [{ a: 'y' }]])
      await connection.close()
    })

    it('runs a script as one transaction', async () => {
      const { db } = given()
      const connection = await db.connectDirect()
      await expect(
        connection.execute('create table public.half (id int); select 1/0;'),
      ).rejects.toMatchObject({ details: { sqlState: '22012' } })
      expect(await connection.query(`select to_regclass('public.half')::text as found`)).toEqual([
        { found: null },
      ])
      await connection.close()
    })

    it('says once that it is closed, also to who asks later', async () => {
      const connection = await given().db.connectDirect()
      const closed = vi.fn<() => void>()
      connection.onClose(closed)
      await Promise.all([connection.close(), connection.close()])
      await eventually(() => expect(closed).toHaveBeenCalledTimes(1))
      const late = vi.fn<() => void>()
      connection.onClose(late)
      await eventually(() => expect(late).toHaveBeenCalledTimes(1))
      await expect(connection.query('select 1')).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' })
      expect(closed).toHaveBeenCalledTimes(1)
    })

    it('is refused when the signal has aborted', async () => {
      await expect(given().db.connectDirect({ signal: AbortSignal.abort() })).rejects.toMatchObject({
        code: 'ABORTED',
      })
    })
  },
  { needs: ['listen'] },
)

describeOnEveryDriver(
  'a lost connection',
  (given) => {
    it('tells a direct connection, whose close still ends in time (N2)', async () => {
      const { db } = given()
      const connection = await db.connectDirect()
      const closed = vi.fn<(error?: Error) => void>()
      connection.onClose(closed)
      const [row] = await connection.query('select pg_backend_pid()::text as pid')
      await runQuery(db, sql`select pg_terminate_backend(${row?.pid}::int)`)
      await eventually(() => expect(closed).toHaveBeenCalledTimes(1))
      await expect(connection.query('select 1')).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' })
      await connection.close()
    })

    it('in a transaction fails the call and neither the process nor the pool', async () => {
      const { db, another } = given()
      // a leaked client would leave none for the next round
      const small = another({ maxConnections: 1 })
      for (let round = 0; round < 3; round++) {
        const lost = small.transaction(async (tx) => {
          const [row] = await runQuery<{ pid: string }>(tx, sql`select pg_backend_pid()::text as pid`)
          await runQuery(db, sql`select pg_terminate_backend(${row!.pid}::int)`)
          await runQuery(tx, sql`select 1`)
        })
        await expect(lost).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' })
      }
      expect(await runQuery(small, sql`select 1 as one`)).toEqual([{ one: 1 }])
      await small.close()
    })
  },
  { needs: ['listen', 'sessions'] },
)

describeOnEveryDriver('a closed store', (given, binding) => {
  it('refuses every call with STORE_CLOSED, and can be closed again', async () => {
    const { db } = binding.capabilities.sessions ? { db: given().another() } : given()
    await runQuery(db, sql`select 1`)
    await db.close()
    const calls: Promise<unknown>[] = [
      runQuery(db, sql`select 1`),
      translated(db.drizzle.select().from(db.tables.streams)),
    ]
    if (binding.capabilities.interactiveTx) calls.push(db.transaction(async () => 1))
    if (binding.capabilities.listen) calls.push(db.connectDirect())
    const outcomes = await Promise.all(calls.map((call) => call.catch((error: unknown) => error)))
    expect(outcomes).toEqual(calls.map(() => expect.objectContaining({ code: 'STORE_CLOSED' }) as unknown))
    await db.close()
  })
})

describeOnEveryDriver(
  'closing a busy store',
  (given) => {
    it('lets what runs finish, fails what waits for a connection, and leaves no session', async () => {
      const { db, another } = given()
      const busy = another()
      const gate = deferred<void>()
      const all = Array.from({ length: 10 }, () => deferred<string>())
      const running = all.map(({ resolve }) =>
        busy.transaction(async (tx) => {
          const [row] = await runQuery<{ pid: string }>(tx, sql`select pg_backend_pid()::text as pid`)
          resolve(row!.pid)
          await gate.promise
          return (await runQuery<{ one: number }>(tx, sql`select 1 as one`))[0]?.one
        }),
      )
      const pids = await Promise.all(all.map(({ promise }) => promise))
      const waiting = runQuery(busy, sql`select 1`)
      const closing = busy.close()
      await expect(waiting).rejects.toMatchObject({ code: 'STORE_CLOSED' })
      gate.resolve()
      await closing
      expect(await Promise.all(running)).toEqual(Array(10).fill(1))
      await eventually(async () => {
        const left = await runQuery(
          db,
          sql`select pid from pg_stat_activity where pid = any (${`{${pids.join(',')}}`}::text::int[])`,
        )
        expect(left).toEqual([])
      })
    })
  },
  { needs: ['interactiveTx', 'sessions'] },
)

describeOnEveryDriver('what a driver cannot do', (given, binding) => {
  it('is refused with a code', async () => {
    const { db } = given()
    const { interactiveTx, listen } = binding.capabilities
    expect(db.capabilities).toMatchObject({ interactiveTx, listen })
    const transaction = db.transaction(async () => 'ran').catch((error: { code: string }) => error.code)
    expect(await transaction).toBe(interactiveTx ? 'ran' : 'TRANSACTION_UNSUPPORTED')
    const direct = db.connectDirect().then(
      (connection) => connection.close().then(() => 'ran'),
      (error: { code: string }) => error.code,
    )
    expect(await direct).toBe(listen ? 'ran' : 'LISTEN_UNSUPPORTED')
  })
})
