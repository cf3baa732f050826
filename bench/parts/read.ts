// P3: pages of a thousand, from the start of a stream to its end, one and ten consumers.
import { readEvents } from '../../src/streams/read-events.ts'
import type { Case, Contestant, Part } from '../harness/case.ts'
import type { EventLog } from '../harness/event-log.ts'
import type { Base } from '../harness/lab.ts'
import { payload, secondsOf, together } from '../harness/load.ts'
import { openEventLogs } from '../harness/peers.ts'
import { seedEvents, seedNote } from '../harness/seed.ts'

const page = 1000
/** The same columns, with the JSON as text, which pg then need not parse. */
const bareSelect = `select "offset", type, key, data::text, headers::text, published_at from millrace.events
  where stream_id = $1 and "offset" > $2 order by "offset" limit $3`

/** The same SELECT in a function and with nothing around it: what a page costs as soon as it comes out of one. */
const bareFunction = `create function public.bench_page(p_stream integer, p_after bigint, p_limit integer)
  returns table (o_offset bigint, o_type text, o_key text, o_data text, o_headers text, o_published timestamptz)
  language plpgsql as $$ begin return query
    select "offset", type, key, data::text, headers::text, published_at from millrace.events
      where stream_id = p_stream and "offset" > p_after order by "offset" limit p_limit;
  end $$`

/** Reads one page after a position. */
type ReadPage = (after: number) => Promise<{ count: number; next: number }>

/** So many consumers at once, each reading all. */
function reader(
  name: string,
  settings: string,
  readPage: ReadPage,
  consumers: number,
  count: number,
): Contestant {
  const readAll = async (): Promise<void> => {
    for (let [after, seen] = [0, 0]; seen < count;) {
      const read = await readPage(after)
      if (read.count === 0) throw new Error(`${name} ended after ${seen} of ${count}`)
      seen += read.count
      after = read.next
    }
  }
  return {
    name,
    settings,
    async measure() {
      return { rate: (consumers * count) / (await secondsOf(() => together(consumers, readAll))) }
    },
  }
}

function contestants(
  base: Base,
  logs: EventLog[],
  streamId: number,
  consumers: number,
  count: number,
): Contestant[] {
  const millrace: ReadPage = async (after) => {
    const { events, next } = await readEvents(base.db, 'bench', { after, limit: page })
    return { count: events.length, next }
  }
  const bare: ReadPage = async (after) => {
    const { rows } = await base.pool.query<{ offset: string }>(bareSelect, [streamId, after, page])
    return { count: rows.length, next: Number(rows.at(-1)?.offset) }
  }
  const inFunction: ReadPage = async (after) => {
    const { rows } = await base.pool.query<{ o_offset: string }>(
      'select * from public.bench_page($1, $2, $3)',
      [streamId, after, page],
    )
    return { count: rows.length, next: Number(rows.at(-1)?.o_offset) }
  }
  return [
    reader('Millrace', 'readEvents', millrace, consumers, count),
    reader('bare', 'SELECT by pg, from the same table', bare, consumers, count),
    reader(
      'in a function',
      'that SELECT in a plpgsql function, and nothing else',
      inFunction,
      consumers,
      count,
    ),
    ...logs.map((log) =>
      reader(log.name, log.settings.read, (after) => log.read('bench', after, page), consumers, count),
    ),
  ]
}

export const read: Part = {
  name: 'read',
  async open(lab, { quick }) {
    const base = await lab.openBase('read')
    const count = quick ? 2000 : 50_000
    const streamId = await seedEvents(base, 'bench', count)
    await base.pool.query(bareFunction)
    const logs = await openEventLogs(base.url)
    for (const log of logs) {
      for (let n = 0; n < count; n += page)
        await log.append(
          'bench',
          Array.from({ length: page }, () => payload),
        )
    }
    await base.pool.query('vacuum (analyze)')
    const units = { rate: 'events/s' }
    const cases: Case[] = [1, 10].map((consumers) => ({
      id: `read-${consumers}`,
      title: `read pages of 1,000, ${consumers === 1 ? 'one consumer' : `${consumers} consumers`}`,
      units,
      contestants: contestants(base, logs, streamId, consumers, consumers === 1 ? count : count / 5),
    }))
    return {
      cases,
      notes: [seedNote],
      async close() {
        for (const log of logs) await log.close()
        await base.close()
      },
    }
  },
}
