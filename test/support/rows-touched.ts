import type pg from 'pg'

/** What a session looked at in some tables. */
export interface RowsTouched {
  rows: number
  /** Scans of a whole table. */
  scans: number
}

/** Runs `work`, a statement or several, in a transaction that is rolled back, and counts what it looks at. */
export async function rowsTouched(
  client: pg.ClientBase,
  tables: readonly string[],
  work: () => Promise<void>,
): Promise<RowsTouched> {
  const count = async (): Promise<RowsTouched> => {
    const { rows } = await client.query<RowsTouched>(
      `select coalesce(sum(coalesce(idx_tup_fetch, 0) + seq_tup_read), 0)::integer as rows,
          coalesce(sum(seq_scan), 0)::integer as scans
        from pg_catalog.pg_stat_xact_user_tables where relname = any ($1)`,
      [tables],
    )
    return rows[0]!
  }
  await client.query('begin')
  try {
    // the session may not have reported yet what it did before
    const before = await count()
    await work()
    const after = await count()
    return { rows: after.rows - before.rows, scans: after.scans - before.scans }
  } finally {
    await client.query('rollback')
  }
}
