import { existsSync } from 'node:fs'
import { createClient } from '../../client/client.ts'
import { findServer } from '../connection.ts'
import type { Cli, Io } from '../io.ts'
import { packageVersion } from '../../node/package-version.ts'
import { readSettings } from '../../settings.ts'
import { createStyle } from '../style.ts'
import { withDatabase } from '../with-database.ts'
import { addressFindings } from './address-findings.ts'
import { clockSkew, horizonHolders, installation, migrations, serverVersion } from './database-findings.ts'
import { encryption } from './encryption-findings.ts'
import { attempt, findingLine, type Finding } from './finding.ts'
import { wakes } from './wake-findings.ts'

/** A server beside this machine answers at once; this is for one far away. */
const serverMs = 5000

/** Looks at everything, and prints each finding as soon as it is known. */
export async function runDoctor(cli: Cli, json: boolean): Promise<void> {
  const { io } = cli
  const style = createStyle(io.stdout, io.env)
  const report = (findings: Finding[]): void => {
    for (const finding of findings) {
      if (finding.level === 'fail') cli.exitCode = 1
      io.stdout.write(json ? `${JSON.stringify(finding)}\n` : findingLine(finding, style))
    }
  }
  const text = `Millrace ${packageVersion()} on Node ${process.versions.node}, ${process.platform}`
  report([{ level: 'ok', topic: 'version', text }])
  report(await httpServer(io))
  report(await attempt('database', () => database(io, report)))
}

/** A database can be well without a server, so that none answers is no failure. */
async function httpServer(io: Io): Promise<Finding[]> {
  const topic = 'server'
  const { url, key } = findServer(io.env)
  try {
    const client = createClient({ url, key: key?.value ?? null, fetch: io.fetch, timeoutMs: serverMs })
    const health = await client.health({ signal: io.signal })
    const mode = health.mode === undefined ? '' : `, wakes: ${health.mode}`
    if (health.ready)
      return [{ level: 'ok', topic, text: `${url} is ready${mode}` }, ...(await keyFinding(client, key))]
    const delivery = health.delivery === undefined ? '' : `, delivery: ${health.delivery}`
    const problem = `database: ${health.database}, migrations: ${health.migrations}${delivery}`
    return [{ level: 'fail', topic, text: `${url} answers, but is not ready (${problem})` }]
  } catch (error) {
    return [{ level: 'warn', topic, text: error instanceof Error ? error.message : String(error) }]
  }
}

async function keyFinding(
  client: ReturnType<typeof createClient>,
  key: ReturnType<typeof findServer>['key'],
): Promise<Finding[]> {
  const topic = 'key'
  if (key === null) return [{ level: 'warn', topic, text: 'there is none: set MILLRACE_KEY' }]
  return attempt(topic, async () => {
    await client.webhooks.list({ limit: 1 })
    return [{ level: 'ok', topic, text: `the server takes the key from ${key.source}` }]
  })
}

/** Without an address there is the embedded database, which looking must not bring into being. */
function missingFolder(io: Io): Finding[] | null {
  const { databaseUrl, dataDir } = readSettings(io.env)
  if (databaseUrl !== null || existsSync(dataDir)) return null
  const text = `DATABASE_URL is not set, and there is no embedded database in ${dataDir}`
  return [{ level: 'fail', topic: 'database', text }]
}

async function database(io: Io, report: (findings: Finding[]) => void): Promise<Finding[]> {
  const missing = missingFolder(io)
  if (missing !== null) return missing
  await withDatabase(io, 'millrace doctor', async ({ db, description }, settings) => {
    report(await serverVersion(db, description))
    report(addressFindings(settings))
    const state = await attempt('migrations', () => migrations(db))
    report(state)
    report(await attempt('clocks', () => clockSkew(db, io.now)))
    report(await attempt('wakes', () => wakes(db, settings, io.signal)))
    if (state.some(({ level }) => level === 'fail')) return
    report(await attempt('installation', () => installation(db, settings)))
    report(await attempt('horizon', () => horizonHolders(db)))
    report(await attempt('encryption', () => encryption(db, settings)))
  })
  return []
}
