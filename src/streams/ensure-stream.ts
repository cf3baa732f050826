import { sql } from 'drizzle-orm'
import { toNumber } from '../db/decode.ts'
import { executorFor, type Db, type TxOption } from '../db/port.ts'
import { runQuery } from '../db/run.ts'
import { MillraceError } from '../errors/millrace-error.ts'
import { assertReadableName } from '../schema/names.ts'

/** Losing to a concurrent creation happens once: then the stream is there. */
const maxTries = 3

/**
 * The database's number of a stream, by which wakes name it; the stream is made if there is none. One
 * statement.
 *
 * @throws INVALID_NAME
 */
export async function ensureStream(db: Db, stream: string, options: TxOption = {}): Promise<number> {
  assertReadableName('stream', stream)
  const on = executorFor(db, options)
  const { streams } = on.tables
  for (let attempt = 1; attempt <= maxTries; attempt++) {
    const [row] = await runQuery<{ id: number }>(
      on,
      sql`with made as (
          insert into ${streams} (name)
          select ${stream}::text where not exists (select 1 from ${streams} s where s.name = ${stream}::text)
          on conflict (name) do nothing
          returning id
        )
        select id from made union all select s.id from ${streams} s where s.name = ${stream}::text limit 1`,
    )
    if (row !== undefined) return toNumber(row.id)
  }
  throw new MillraceError('DATABASE_BUSY', `the stream "${stream}" was being created by others`)
}
