import { sql } from 'drizzle-orm'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import type { Db } from '../../src/db/port.ts'
import { publishEvents } from '../../src/streams/publish-events.ts'
import { readEvents, type EventPage } from '../../src/streams/read-events.ts'
import { holdTransaction, type Held } from '../contract/support/held.ts'
import type { TestDatabase } from '../support/database.ts'
import { createMigratedDatabase } from '../support/migrated.ts'

/*
 * The reader is stopped before each of its four steps, at gates that are advisory locks of this test, and
 * publishers begin and end exactly there. Point 0 is before the reader starts, 1 to 4 are the gates, 5 is
 * after it is done.
 */
const gates = [1, 2, 3, 4]
const lastPoint = 5
const gateClass = 4242

let database: TestDatabase
let db: Db
let keeper: pg.Client

beforeAll(async () => {
  database = await createMigratedDatabase()
  db = createNodePostgresDb({ url: database.url, maxConnections: 12 })
  keeper = new pg.Client({ connectionString: database.url })
  await keeper.connect()
  await keeper.query(`create function public.gate(n integer) returns void language plpgsql as $$
    begin
      perform pg_catalog.pg_advisory_lock_shared(${gateClass}, n);
      perform pg_catalog.pg_advisory_unlock_shared(${gateClass}, n);
    end $$`)
  await insertGates('horizon', { 1: '-- step 1', 2: '-- step 2' })
  await insertGates('read_events', { 3: '-- step 3', 4: '-- step 4' })
})
afterAll(async () => {
  await keeper.end()
  await db.close()
  await database.drop()
})

/** The function as it is, with a gate before each of the comments. */
async function insertGates(name: string, marks: Record<number, string>): Promise<void> {
  const found = await keeper.query<{ definition: string }>(
    'select pg_catalog.pg_get_functiondef(p.oid) as definition from pg_catalog.pg_proc p where p.proname = $1',
    [name],
  )
  let text = found.rows[0]!.definition
  for (const [gate, mark] of Object.entries(marks)) {
    expect(text.split(`${mark}`).length).toBeGreaterThan(1)
    text = text.replace(mark, `perform public.gate(${gate});\n${mark}`)
  }
  await keeper.query(text)
}

/** One read, stopped at each gate until `at` has done what is to happen there. */
async function readStepByStep(stream: string, at: (point: number) => Promise<void>): Promise<EventPage> {
  await keeper.query(
    `select pg_catalog.pg_advisory_lock(${gateClass}, n) from pg_catalog.unnest($1::int[]) n`,
    [gates],
  )
  const reading = readEvents(db, stream)
  for (const gate of gates) {
    await vi.waitFor(
      async () => {
        const { rowCount } = await keeper.query(
          `select 1 from pg_catalog.pg_locks where classid = ${gateClass} and objid = ${gate} and not granted`,
        )
        expect(rowCount).toBe(1)
      },
      { timeout: 20_000, interval: 2 },
    )
    await at(gate)
    await keeper.query(`select pg_catalog.pg_advisory_unlock(${gateClass}, ${gate})`)
  }
  return reading
}

const event = { type: 't', dataText: '1' }

interface Plan {
  begins: number
  ends: number
  how: 'commit' | 'rollback'
}

/**
 * One publisher that begins at one point and ends at another, beside one that publishes at every point at
 * once. Returns what was committed and what a reader that follows `next` saw.
 */
async function play(stream: string, plan: Plan): Promise<{ committed: number[]; seen: number[] }> {
  const committed = (await publishEvents(db, stream, [event])).offsets
  let held: Held | undefined
  let offsets: number[] = []
  const at = async (point: number): Promise<void> => {
    if (point === plan.begins) {
      held = await holdTransaction(db)
      offsets = (await publishEvents(db, stream, [event], { tx: held.tx.drizzle })).offsets
    }
    committed.push(...(await publishEvents(db, stream, [event])).offsets)
    if (point === plan.ends) {
      await held?.[plan.how]()
      if (plan.how === 'commit') committed.push(...offsets)
    }
  }
  await at(0)
  const page = await readStepByStep(stream, at)
  await at(lastPoint)
  const rest = await readEvents(db, stream, { after: page.next })
  const seen = [...page.events, ...rest.events].map(({ offset }) => offset)
  return { committed: committed.toSorted((a, b) => a - b), seen }
}

const plans: Plan[] = [0, ...gates].flatMap((begins) =>
  [0, ...gates, lastPoint]
    .filter((ends) => ends >= begins)
    .flatMap((ends) => (['commit', 'rollback'] as const).map((how) => ({ begins, ends, how }))),
)

describe('publishers that begin and end between the statements of a reader', { timeout: 180_000 }, () => {
  it('S1: lose nothing, wherever it is', async () => {
    for (const plan of plans) {
      const { committed, seen } = await play(`gated-${JSON.stringify(plan).replace(/[^\w]+/g, '-')}`, plan)
      expect(seen, JSON.stringify(plan)).toEqual(committed)
    }
  })

  it('would lose events if the reader looked at the locks before the sequence: the test above can fail', async () => {
    await db.drizzle.execute(sql.raw(swappedSteps))
    const lost: Plan[] = []
    for (const plan of plans.filter(({ how }) => how === 'commit')) {
      const { committed, seen } = await play(`swapped-${plan.begins}-${plan.ends}`, plan)
      if (committed.some((offset) => !seen.includes(offset))) lost.push(plan)
    }
    // exactly those that begin between the two and are not done before the events are read
    expect(lost).toEqual([{ begins: 2, ends: lastPoint, how: 'commit' }])
  })
})

const swappedSteps = `
  create or replace function millrace.horizon(p_stream_id integer, out o_last bigint, out o_horizon bigint)
  language plpgsql volatile as $$
  declare
    v_lowest bigint;
  begin
    perform public.gate(1);
    select min(l.objid::bigint) into v_lowest from pg_catalog.pg_locks l
      where l.locktype = 'advisory' and l.classid = millrace.stream_lock_key(p_stream_id)::oid
        and l.objsubid = 2 and l.granted and l.pid is distinct from pg_catalog.pg_backend_pid();
    perform public.gate(2);
    o_last := millrace.last_offset();
    o_horizon := least(o_last, v_lowest);
  end
  $$`
