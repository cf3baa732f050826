import { sql } from 'drizzle-orm'
import { toNumber } from '../db/decode.ts'
import type { Executor } from '../db/port.ts'
import { qualified, runQuery } from '../db/run.ts'

/** A transaction that has published and is not decided yet: nobody reads the stream past it. */
export interface HorizonHolder {
  stream: string
  /** The backend; null for a prepared transaction, which has none. */
  pid: number | null
  /** The name of a prepared transaction; null for an ordinary one. */
  prepared: string | null
  /** How long ago the transaction began (was prepared). */
  ageMs: number
  /** `application_name`; empty when the client gave none, or this role may not see it. */
  application: string
  user: string
  /** Such as `active` or `idle in transaction`; `prepared` for a prepared one. */
  state: string
  /** Its current or last statement; empty for a prepared one, or when this role may not see it. */
  query: string
}

/**
 * Who holds the horizon of streams back, the oldest first; the own backend does not count. One
 * statement.
 *
 * @param stream only this one's holders; default: those of all streams
 */
export async function listHorizonHolders(on: Executor, stream?: string): Promise<HorizonHolder[]> {
  const rows = await runQuery<HolderRow>(
    on,
    sql`with locks as materialized (
        select l.locktype, l.database, l.classid, l.objsubid, l.pid, l.virtualtransaction, l.transactionid
        from pg_catalog.pg_locks l where l.locktype in ('advisory', 'transactionid') and l.granted
      ), held as (
        select l.classid, l.pid, l.virtualtransaction from locks l
        where l.locktype = 'advisory' and l.objsubid = 2
          and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())
          and l.pid is distinct from pg_backend_pid()
      ), prepared as (
        -- without a backend, its lock on its own number is what tells which one it is
        select l.virtualtransaction, p.gid, p.prepared, p.owner
        from pg_catalog.pg_prepared_xacts p
        join locks l on l.locktype = 'transactionid' and l.pid is null and l.transactionid = p.transaction
      )
      select s.name as stream, h.pid, p.gid as prepared,
        round(extract(epoch from clock_timestamp() - coalesce(a.xact_start, p.prepared)) * 1000)::bigint::text as age_ms,
        a.application_name as application, coalesce(a.usename, p.owner)::text as "user", a.state, a.query
      from held h
      join ${on.tables.streams} s on ${qualified(on, 'stream_lock_key')}(s.id)::oid = h.classid
      left join pg_catalog.pg_stat_activity a on a.pid = h.pid
      left join prepared p on h.pid is null and p.virtualtransaction = h.virtualtransaction
      where ${stream === undefined ? sql`true` : sql`s.name = ${stream}::text`}
      order by coalesce(a.xact_start, p.prepared), s.name`,
  )
  return rows.map(toHolder)
}

interface HolderRow {
  stream: string
  pid: number | null
  prepared: string | null
  age_ms: string | null
  application: string | null
  user: string | null
  state: string | null
  query: string | null
}

function toHolder(row: HolderRow): HorizonHolder {
  return {
    stream: row.stream,
    pid: row.pid,
    prepared: row.prepared,
    ageMs: toNumber(row.age_ms ?? 0),
    application: row.application ?? '',
    user: row.user ?? '',
    state: row.state ?? (row.prepared === null ? 'unknown' : 'prepared'),
    query: row.query ?? '',
  }
}
