import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import pg from 'pg'
import { inject } from 'vitest'
import { copyDatabase, createTestDatabase, type TestDatabase } from '../../support/database.ts'

const run = promisify(execFile)

/** A way to come by a copy of a database, as its users do. */
export type Copy = (url: string) => Promise<TestDatabase>

/** The ways there are on this machine; says why where the second is not one. */
export async function waysToCopy(): Promise<[string, Copy][]> {
  const problem = await whyNoDump()
  if (problem !== null) process.stderr.write(`copies by pg_dump are not tried: ${problem}\n`)
  return [
    ['a branch (CREATE DATABASE … TEMPLATE)', copyDatabase],
    ...(problem === null ? [['a restored pg_dump', dumpAndRestore] satisfies [string, Copy]] : []),
  ]
}

async function whyNoDump(): Promise<string | null> {
  const admin = new pg.Client({ connectionString: inject('adminUrl') })
  await admin.connect()
  const { rows } = await admin
    .query<{ version: string }>('show server_version_num')
    .then(({ rows }) => ({ rows: rows.map((row) => ({ version: (row as never)['server_version_num'] })) }))
  await admin.end()
  const server = Math.floor(Number(rows[0]?.version) / 10_000)
  const tool = await run('pg_dump', ['--version']).then(
    ({ stdout }) => Number(/(\d+)/.exec(stdout)?.[1]),
    () => null,
  )
  if (tool === null) return 'there is no pg_dump'
  return tool < server ? `pg_dump ${tool} is older than the server, ${server}` : null
}

async function dumpAndRestore(url: string): Promise<TestDatabase> {
  const { stdout } = await run('pg_dump', ['--inserts', '--no-owner', url], { maxBuffer: 64 * 1024 * 1024 })
  const copy = await createTestDatabase()
  const client = new pg.Client({ connectionString: copy.url })
  await client.connect()
  // psql's own commands are not SQL
  await client.query(stdout.replaceAll(/^\\.*$/gm, ''))
  await client.end()
  return copy
}
