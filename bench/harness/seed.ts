import type { Base } from './lab.ts'
import { payloadText } from './load.ts'

/** Said wherever figures stand on it. */
export const seedNote =
  'Events and messages that are stored beforehand are inserted by generate_series, around `append` and `send`.'

/**
 * Stores so many events in a stream, by one INSERT that goes around `append`: nobody publishes meanwhile. Returns
 * the stream's number.
 */
export async function seedEvents({ pool }: Base, stream: string, count: number): Promise<number> {
  const { rows } = await pool.query<{ id: number }>(
    'insert into millrace.streams (name) values ($1) on conflict (name) do update set name = excluded.name returning id',
    [stream],
  )
  const id = rows[0]!.id
  await pool.query(
    `insert into millrace.events (stream_id, "offset", type, key, data, published_at)
       select $1, nextval('millrace.event_offset'), 'bench.event', 'k' || n % 500, $2::json, clock_timestamp()
       from generate_series(1, $3::integer) n`,
    [id, payloadText, count],
  )
  await pool.query('vacuum (analyze) millrace.events')
  return id
}

/** Stores so many messages in a queue, ready to be claimed, by one INSERT that goes around `send`. */
export async function seedMessages({ pool }: Base, queue: string, count: number): Promise<void> {
  await pool.query(
    `insert into millrace.messages (queue_id, state, priority, attempts, max_attempts, lease_ms, backoff_base_ms,
        backoff_max_ms, backoff_factor, sent_at, data)
       select millrace.ensure_queue($1), 'ready', 0, 0, 10, 30000, 1000, 3600000, 2, clock_timestamp(), $2::json
       from generate_series(1, $3::integer)`,
    [queue, payloadText, count],
  )
  await pool.query('vacuum (analyze) millrace.messages')
}
