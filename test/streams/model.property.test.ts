import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
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

type SavepointStep = { do: 'savepoint' | 'fallBack' }
type PrepareStep = { do: 'prepare' | 'commitPrepared' | 'rollbackPrepared' }
type ConsumerStep = { do: 'read' | 'save' | 'seek' | 'trim'; share: number }
type Step =
  | { do: 'publish'; count: number }
  | { do: 'begin' | 'append' | 'commit' | 'rollback' }
  | SavepointStep
  | PrepareStep
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
    { weight: 3, arbitrary: fc.record({ do: fc.constant('trim' as const), share }) },
    { weight: 8, arbitrary: fc.record({ do: fc.constant('read' as const), share }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('save' as const), share }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('seek' as const), share }) },
  ),
})

/** How often each kind of step was more than a step that could not be taken. */
const taken = new Map<string, number>()
function tally(what: string): void {
  taken.set(what, (taken.get(what) ?? 0) + 1)
}

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

/** One step; where it cannot be taken, the one that leads to it. */
async function apply(run: Run, session: Session, now: Step): Promise<void> {
  switch (now.do) {
    case 'publish':
    case 'begin':
    case 'append':
    case 'commit':
    case 'rollback':
      await publishStep(run, session, now)
      return
    case 'savepoint':
    case 'fallBack':
      await savepointStep(run, session, now)
      return
    case 'prepare':
    case 'commitPrepared':
    case 'rollbackPrepared':
      await prepareStep(run, session, now)
      return
    default:
      await consume(run, session, now)
  }
}

async function publishStep(
  { stream, model }: Run,
  session: Session,
  now: { do: 'publish' | 'begin' | 'append' | 'commit' | 'rollback'; count?: number },
): Promise<void> {
  const { client, open } = session
  if (open === null) {
    if (now.do === 'begin' || now.do === 'append') {
      await client.query('begin')
      session.open = { offsets: [], savepoints: [] }
      return
    }
    model.committed(await append(session, stream, now.count ?? 1))
    tally('publish')
    return
  }
  if (now.do !== 'commit' && now.do !== 'rollback') {
    open.offsets.push(...(await append(session, stream, 1)))
    tally('publish in a transaction')
    return
  }
  session.open = null
  await client.query(now.do)
  if (now.do === 'commit') model.committed(open.offsets)
  if (open.offsets.length > 0) tally(now.do)
}

async function savepointStep(run: Run, session: Session, now: SavepointStep): Promise<void> {
  const { client, open } = session
  if (open === null) return publishStep(run, session, { do: 'begin' })
  const { savepoints, offsets } = open
  if (now.do === 'savepoint' ? savepoints.length < 4 : savepoints.length === 0) {
    await client.query(`savepoint s${savepoints.length}`)
    savepoints.push(offsets.length)
    return publishStep(run, session, { do: 'append' })
  }
  const kept = savepoints.pop() ?? 0
  await client.query(`rollback to savepoint s${savepoints.length}`)
  if (offsets.splice(kept).length > 0) tally('publish undone by a savepoint')
}

async function prepareStep(run: Run, session: Session, now: PrepareStep): Promise<void> {
  const { prepared } = session
  if (prepared !== null) {
    const how = now.do === 'rollbackPrepared' ? 'rollback' : 'commit'
    session.prepared = null
    // anybody may; the session itself may be in its next transaction
    await db.drizzle.execute(sql.raw(`${how} prepared '${prepared.id}'`))
    if (how === 'commit') run.model.committed(prepared.offsets)
    tally(`${how} of what was prepared`)
    return
  }
  if (session.open === null) await publishStep(run, session, { do: 'begin' })
  await publishStep(run, session, { do: 'append' })
  const id = `model_${randomUUID()}`
  await session.client.query(`prepare transaction '${id}'`)
  session.prepared = { id, offsets: session.open?.offsets ?? [] }
  session.open = null
}

/** A session's reader follows `next` and keeps everything it saw; saves and seeks move its saved offset. */
async function consume({ stream, model }: Run, session: Session, now: ConsumerStep): Promise<void> {
  const { reader, name } = session
  if (now.do === 'trim') {
    // low, so that most of the stream still has to be seen by everyone
    const through = model.pick(now.share ** 2 / 2)
    model.trimming(through)
    if ((await trimStream(db, stream, through)) > 0) tally('trim')
    return
  }
  if (now.do === 'read') {
    const limit = 1 + Math.floor(now.share * 20)
    await reader.read(async (after) => {
      const page = await readEvents(db, stream, { after, limit })
      if (page.held) tally('read that is held back')
      if (page.events.length > 0) tally('read')
      return page
    })
    return
  }
  const offset = model.pick(now.share)
  const id = { stream, consumer: name }
  await reader.move(now.do, offset, () => (now.do === 'save' ? saveOffset : seekOffset)(db, id, offset))
  expect(await getOffset(db, id)).toBe(reader.saved())
  tally(now.do)
}

/** Ends all that is open, lets every reader come to the end, and compares. */
async function finish(run: Run): Promise<void> {
  for (const session of run.sessions) {
    if (session.open !== null) await apply(run, session, { do: 'commit' })
    if (session.prepared !== null) await apply(run, session, { do: 'commitPrepared' })
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
      process.stderr.write(`of ${steps} steps: ${[...taken].map(([what, n]) => `${n} ${what}`).join(', ')}\n`)
      // all of it is in there, and not as a rarity
      expect(taken.size).toBe(12)
      for (const [what, times] of taken) expect(times, what).toBeGreaterThan(steps / 200)
    },
    long ? 1_200_000 : 240_000,
  )
})
