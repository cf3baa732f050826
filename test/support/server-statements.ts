import pg from 'pg'
import { inject } from 'vitest'

/** Counts what reaches the server, as the server counts it: whatever driver, gateway or pool is in between. */
export interface ServerStatements {
  /** From here on. */
  reset(): Promise<void>
  /** How often each statement was run in the database since, without those inside of functions. */
  read(): Promise<{ query: string; calls: number }[]>
  total(): Promise<number>
}

/**
 * Statements of one database, by `pg_stat_statements`. Its own questions are asked in another one.
 *
 * @returns undefined where the server has not loaded the extension; that is printed
 */
export async function countServerStatements(databaseUrl: string): Promise<ServerStatements | undefined> {
  const database = new URL(databaseUrl).pathname.slice(1)
  const loaded = await ask<{ loaded: boolean }>(
    `select current_setting('shared_preload_libraries') like '%pg_stat_statements%' as loaded`,
  )
  if (loaded[0]?.loaded !== true) {
    process.stderr.write('nothing is counted at the server: it has not loaded pg_stat_statements\n')
    return undefined
  }
  await ask('create extension if not exists pg_stat_statements')
  const read = () =>
    ask<{ query: string; calls: number }>(
      `select s.query, s.calls::integer as calls from pg_stat_statements s
       join pg_catalog.pg_database d on d.oid = s.dbid and d.datname = $1 where s.toplevel order by s.query`,
      [database],
    )
  return {
    async reset() {
      await ask(
        'select pg_stat_statements_reset(0, (select oid from pg_catalog.pg_database where datname = $1), 0)',
        [database],
      )
    },
    read,
    total: async () => (await read()).reduce((sum, { calls }) => sum + calls, 0),
  }
}

async function ask<Row extends object>(text: string, values: unknown[] = []): Promise<Row[]> {
  const admin = new pg.Client({ connectionString: inject('adminUrl') })
  await admin.connect()
  try {
    return (await admin.query<Row>(text, values)).rows
  } finally {
    await admin.end()
  }
}
