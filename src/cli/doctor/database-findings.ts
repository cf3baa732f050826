import { sql } from 'drizzle-orm'
import { toNumber } from '../../db/decode.ts'
import { checkMigrations } from '../../db/migrate/check-migrations.ts'
import { lackingText } from '../../db/migrate/objects.ts'
import { readMigrationFiles } from '../../db/migrate/node-files.ts'
import type { Db } from '../../db/port.ts'
import { runQuery } from '../../db/run.ts'
import type { Settings } from '../../settings.ts'
import { listHorizonHolders, type HorizonHolder } from '../../streams/horizon-holders.ts'
import type { Finding } from './finding.ts'

/** Postgres 14 is the oldest that the functions are written for. */
const oldestVersion = 140_000
/** Receivers give timestamps 300 s; beyond a few seconds something is wrong with a clock. */
const skewWarnMs = 2000
const skewFailMs = 60_000
/** An ordinary publish holds the horizon for milliseconds. */
const holderWarnMs = 10_000

/** Whether the server answers, how fast, and whether it is one that Millrace can use. */
export async function serverVersion(db: Db, description: string): Promise<Finding[]> {
  // the first query pays for the connection
  await runQuery(db, sql`select 1`)
  const startedAt = performance.now()
  const [row] = await runQuery<{ number: string; version: string; standby: boolean }>(
    db,
    sql`select current_setting('server_version_num') as number, current_setting('server_version') as version,
      pg_is_in_recovery() as standby`,
  )
  const tookMs = (performance.now() - startedAt).toFixed(1)
  const number = toNumber(row?.number)
  const findings: Finding[] = [
    { level: 'ok', topic: 'database', text: `${description} answers in ${tookMs} ms (${db.driver})` },
    {
      level: number >= oldestVersion ? 'ok' : 'fail',
      topic: 'version',
      text: `Postgres ${row?.version}${number >= oldestVersion ? '' : ': Millrace needs 14 or newer'}`,
    },
  ]
  if (row?.standby === true) {
    findings.push({ level: 'fail', topic: 'standby', text: 'this is a standby: Millrace needs the primary' })
  }
  return findings
}

/** How the tables stand to this version. */
export async function migrations(db: Db): Promise<Finding[]> {
  const topic = 'migrations'
  const { already, missing, changed, unknown, lacking } = await checkMigrations(
    db,
    await readMigrationFiles(),
  )
  const where = `in schema ${db.schema}`
  if (changed.length > 0) {
    const text = `${changed.join(', ')} ${where}: applied from files that differ from this version's`
    return [{ level: 'fail', topic, text }]
  }
  if (unknown.length > 0) {
    return [
      { level: 'fail', topic, text: `${unknown.join(', ')} ${where}: of a newer Millrace than this one` },
    ]
  }
  if (lacking.length > 0) return [{ level: 'fail', topic, text: lackingText(lacking, db.schema) }]
  if (missing.length > 0) {
    return [
      { level: 'fail', topic, text: `${missing.join(', ')} missing ${where}: run \`millrace migrate\`` },
    ]
  }
  return [{ level: 'ok', topic, text: `all ${already.length} applied ${where}` }]
}

/** Who this database says it is, and whether that is who the settings expect (W7). */
export async function installation(db: Db, settings: Settings): Promise<Finding[]> {
  const [row] = await runQuery<{ id: string; environment: string | null }>(
    db,
    sql`select id::text as id, environment from ${db.tables.installation}`,
  )
  const topic = 'installation'
  if (row === undefined) return [{ level: 'fail', topic, text: 'has no identity: run `millrace migrate`' }]
  const here = settings.environment
  const text = `${row.id}, environment ${row.environment ?? 'not named'}`
  if (row.environment === here) return [{ level: 'ok', topic, text }]
  return [
    {
      level: 'fail',
      topic,
      text: `${text}, but MILLRACE_ENVIRONMENT is ${here ?? 'not set'}: nothing is delivered`,
    },
  ]
}

/** How far this machine's clock and the database's are apart, give or take half a round trip. */
export async function clockSkew(db: Db, now: () => number): Promise<Finding[]> {
  const before = now()
  const [row] = await runQuery<{ ms: string }>(
    db,
    sql`select round(extract(epoch from clock_timestamp()) * 1000)::bigint::text as ms`,
  )
  const after = now()
  const skewMs = Math.round(toNumber(row?.ms) - (before + after) / 2)
  const text = `the database is ${Math.abs(skewMs)} ms ${skewMs < 0 ? 'behind' : 'ahead of'} this machine`
  if (Math.abs(skewMs) < skewWarnMs) return [{ level: 'ok', topic: 'clocks', text }]
  const level = Math.abs(skewMs) < skewFailMs ? 'warn' : 'fail'
  return [{ level, topic: 'clocks', text: `${text}: webhooks are signed with this machine's time` }]
}

/** Who holds readers back. */
export async function horizonHolders(db: Db): Promise<Finding[]> {
  const holders = await listHorizonHolders(db)
  if (holders.length === 0) return [{ level: 'ok', topic: 'horizon', text: 'no stream is held back' }]
  return holders.map((holder) => ({
    level: holder.ageMs < holderWarnMs ? 'note' : 'warn',
    topic: 'horizon',
    text: describeHolder(holder),
  }))
}

function describeHolder({
  stream,
  pid,
  prepared,
  ageMs,
  application,
  user,
  state,
  query,
}: HorizonHolder): string {
  const who = prepared === null ? `pid ${pid}` : `prepared transaction "${prepared}"`
  const facts = [user, application, state, `for ${(ageMs / 1000).toFixed(1)} s`].filter(Boolean).join(', ')
  const statement = query === '' ? '' : `: ${query.replace(/\s+/g, ' ').slice(0, 120)}`
  return `stream ${stream} is held back by ${who} (${facts})${statement}`
}
