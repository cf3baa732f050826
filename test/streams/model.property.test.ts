import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import type { Db } from '../../src/db/port.ts'
import { getOffset, saveOffset, seekOffset } from '../../src/streams/consumer-offsets.ts'
import { readEvents } from '../../src/streams/read-events.ts'
import { trimStream } from '../../src/streams/trim-stream.ts'
import type { TestDatabase } from '../support/database.ts'
import { createMigratedDatabase } from '../support/migrated.ts'
import { createModel, type Model, type ModelReader } from './support/stream-model.ts'

/*
 * Steps are dealt to sessions that work side by side; each run of steps is checked against a model that
 * knows only what was committed, what may be trimmed, and where the consumers stand.
 */
const sessions = 4
const long = process.env.MILLRACE_LONG_TESTS === '1'
const steps = long ? 100_000 : 10_000
const stepsPerRun = 250

type ConsumerStep = { do: 'read' | 'save' | 'seek'; share: number }
type Step =
  | { do: 'publish'; count: number }
  | { do: 'begin' | 'append' | 'savepoint' | 'fallBack' | 'commit' | 'rollback' | 'prepare' }
  | { do: 'commitPrepared' | 'rollbackPrepared' }
  | { do: 'trim'; share: number }
  | ConsumerStep

const simple = <Name extends string>(name: Name) => fc.constant({ do: name })
const share = fc.double({ min: 0, max: 1, noNaN: true })
const step: fc.Arbitrary<{ session: number; step: Step }> = fc.record({
  session: fc.nat({ max: sessions - 1 }),
  step: fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ do: fc.constant('publish' as const), count: fc.integer({ min: 1, max: 3 }) }),
    },
    { weight: 5, arbitrary: simple('begin' as const) },
    { weight: 6, arbitrary: simple('append' as const) },
    { weight: 3, arbitrary: simple('savepoint' as const) },
    { weight: 2, arbitrary: simple('fallBack' as const) },
    { weight: 4, arbitrary: simple('commit' as const) },
    { weight: 3, arbitrary: simple('rollback' as const) },
    { weight: 2, arbitrary: simple('prepare' as const) },
    { weight: 2, arbitrary: simple('commitPrepared' as const) },
    { weight: 2, arbitrary: simple('rollbackPrepared' as const) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('trim' as const), share }) },
    { weight: 8, arbitrary: fc.record({ do: fc.constant('read' as const), share }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('save' as const), share }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('seek' as const), share }) },
  ),
})

let database: TestDatabase
let db: Db
let clients: pg.Client[] = []

beforeAll(async () => {
  database = await createMigratedDatabase()
  db = createNodePostgresDb({ url: database.url })
  clients = Array.from({ length: sessions }, () => new pg.Client({ connectionString: database.url }))
  await Promise.all(clients.map((client) => client.connect()))
})
afterAll(async () => {
  await Promise.all(clients.map((client) => client.end()))
  await db.close()
  await database.drop()
})

/** A publisher's session: at most one transaction, with savepoints, and what it may have prepared. */
interface Session {
  client: pg.Client
  /** The name of its consumer. */
  name: string
  reader: ModelReader
  open: { offsets: number[]; savepoints: number[] } | null
  prepared: { id: string; offsets: number[] } | null
}

interface Run {
  stream: string
  model: Model
  sessions: Session[]
}

async function append({ client }: Session, stream: string, count: number): Promise<number[]> {
  const values = Array.from({ length: count }, () => '1')
  const { rows } = await client.query<{ offsets: string[] }>(
    `select a.o_offsets::text[] as offsets from millrace.append($1, $2, $3, $2, $3, null, null) a`,
    [stream, values, values.map(() => null)],
  )
  return rows[0]!.offsets.map(Number)
}

async function apply(run: Run, session: Session, now: Step): Promise<void> {
  const { stream, model } = run
  const { client, open } = session
  switch (now.do) {
    case 'publish': {
      if (open !== null) return
      model.committed(await append(session, stream, now.count))
      return
    }
    case 'begin':
      if (open !== null) return
      await client.query('begin')
      session.open = { offsets: [], savepoints: [] }
      return
    case 'append':
      if (open !== null) open.offsets.push(...(await append(session, stream, 1)))
      return
    case 'savepoint':
      if (open === null || open.savepoints.length > 3) return
      await client.query(`savepoint s${open.savepoints.length}`)
      open.savepoints.push(open.offsets.length)
      return
    case 'fallBack': {
      const kept = open?.savepoints.pop()
      if (open === null || kept === undefined) return
      await client.query(`rollback to savepoint s${open.savepoints.length}`)
      open.offsets.splice(kept)
      return
    }
    case 'commit':
    case 'rollback':
      if (open === null) return
      session.open = null
      await client.query(now.do)
      if (now.do === 'commit') model.committed(open.offsets)
      return
    case 'prepare': {
      if (open === null || session.prepared !== null || open.offsets.length === 0) return
      const id = `model_${randomUUID()}`
      await client.query(`prepare transaction '${id}'`)
      session.prepared = { id, offsets: open.offsets }
      session.open = null
      return
    }
    case 'commitPrepared':
    case 'rollbackPrepared': {
      const { prepared } = session
      if (open !== null || prepared === null) return
      session.prepared = null
      const how = now.do === 'commitPrepared' ? 'commit' : 'rollback'
      await client.query(`${how} prepared '${prepared.id}'`)
      if (how === 'commit') model.committed(prepared.offsets)
      return
    }
    case 'trim': {
      // low, so that most of the stream still has to be seen by everyone
      const through = model.pick(now.share ** 2 / 2)
      model.trimming(through)
      await trimStream(db, stream, through)
      return
    }
    default:
      await consume(run, session, now)
  }
}

/** A session's reader follows `next` and keeps everything it saw; saves and seeks move its saved offset. */
async function consume({ stream, model }: Run, session: Session, now: ConsumerStep): Promise<void> {
  const { reader, name } = session
  if (now.do === 'read') {
    const limit = 1 + Math.floor(now.share * 20)
    await reader.read((after) => readEvents(db, stream, { after, limit }))
    return
  }
  const offset = model.pick(now.share)
  const id = { stream, consumer: name }
  await reader.move(now.do, offset, () => (now.do === 'save' ? saveOffset : seekOffset)(db, id, offset))
  expect(await getOffset(db, id)).toBe(reader.saved())
}

/** Ends all that is open, lets every reader come to the end, and compares. */
async function finish(run: Run): Promise<void> {
  for (const session of run.sessions) {
    await apply(run, session, { do: 'commit' })
    await apply(run, session, { do: 'commitPrepared' })
  }
  for (const { reader } of run.sessions) {
    while (await reader.read((after) => readEvents(db, run.stream, { after, limit: 1000 })));
    reader.check()
  }
  await trimStream(db, run.stream, run.model.trimmed())
  const all = await readEvents(db, run.stream, { limit: 1000 })
  expect(all.events.map(({ offset }) => offset)).toEqual(run.model.left())
}

async function play(dealt: readonly { session: number; step: Step }[]): Promise<void> {
  const model = createModel()
  const run: Run = {
    stream: `model-${randomUUID()}`,
    model,
    sessions: clients.map((client, index) => ({
      ...{ client, name: `c${index}`, reader: model.reader(), open: null, prepared: null },
    })),
  }
  // the first events make the stream: a session that makes it in a transaction would hold up the others' first
  run.model.committed(await append(run.sessions[0]!, run.stream, 1))
  const own = run.sessions.map((session, index) => ({
    session,
    steps: dealt.filter((one) => one.session === index).map((one) => one.step),
  }))
  await Promise.all(
    own.map(async ({ session, steps: mine }) => {
      for (const now of mine) await apply(run, session, now)
    }),
  )
  await finish(run)
}

describe('a stream under everything at once', () => {
  it(
    `S1, S3, S4: agrees with its model over ${steps} steps`,
    async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(step, { minLength: stepsPerRun, maxLength: stepsPerRun, size: 'max' }),
          play,
        ),
        { numRuns: steps / stepsPerRun, endOnFailure: true },
      )
    },
    long ? 1_200_000 : 240_000,
  )
})
