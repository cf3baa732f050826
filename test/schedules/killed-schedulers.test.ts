import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import type { Db } from '../../src/db/port.ts'
import { putSchedule } from '../../src/schedules/put-schedule.ts'
import { getSchedule } from '../../src/schedules/read-schedules.ts'
import type { TestDatabase } from '../support/database.ts'
import { createMigratedDatabase } from '../support/migrated.ts'
import { dueTimes, intoStream, tick } from './support.ts'

/** One file of plain JavaScript: a process that has to compile the sources first takes seconds to start. */
async function bundle(folder: string): Promise<string> {
  const outfile = join(folder, 'scheduler.mjs')
  await build({
    entryPoints: [fileURLToPath(new URL('scheduler-process.ts', import.meta.url))],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    external: ['pg-native'],
    banner: {
      js: `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)`,
    },
  })
  return outfile
}

const everyMs = 250
/** Hours ahead, right, and hours behind. */
const skews = [3 * 3_600_000, 0, -3 * 3_600_000]
const kills = 5
/** Nothing that the distance of the boundaries is a multiple of: so the kills fall on every part of a tick. */
const lookMs = 37

const started: ChildProcess[] = []

async function start(script: string, url: string, skewMs: number): Promise<ChildProcess> {
  const child = spawn(process.execPath, [script], {
    // one host name for all: nothing may be told apart by it
    env: { ...process.env, DATABASE_URL: url, SKEW_MS: String(skewMs), HOSTNAME: 'same-host' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  started.push(child)
  await once(child.stdout!, 'data')
  return child
}

async function kill(child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}

describe('three schedulers with one host name, one of them killed again and again', () => {
  let database: TestDatabase
  let db: Db
  let folder: string
  let script: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-schedulers-'))
    script = await bundle(folder)
    database = await createMigratedDatabase()
    db = createNodePostgresDb({ url: database.url })
  })
  afterAll(async () => {
    for (const child of started) child.kill('SIGKILL')
    await db.close()
    await database.drop()
    await rm(folder, { recursive: true })
  })

  it('fire each boundary once, whatever their clocks say (Q5, Q6)', async () => {
    const children = await Promise.all(skews.map((skewMs) => start(script, database.url, skewMs)))
    await putSchedule(db, 'beat', intoStream('beat', { everyMs, catchUp: 'all' }))
    const first = (await getSchedule(db, 'beat'))!.nextAt!.getTime()
    for (let turn = 0; turn < kills; turn++) {
      const victim = turn % children.length
      const before = (await dueTimes(db, 'beat')).length
      // the others carry on: bounded, awaited progress instead of a fixed time
      await vi.waitFor(async () => expect((await dueTimes(db, 'beat')).length).toBeGreaterThan(before + 2), {
        timeout: 20_000,
        interval: lookMs,
      })
      await kill(children[victim]!)
      children[victim] = await start(script, database.url, skews[victim]!)
    }
    await Promise.all(children.map(kill))
    // whoever died as the leader holds the lead for a moment more
    await vi.waitFor(async () => expect((await tick(db)).role).not.toBe('standby'), { timeout: 20_000 })

    const due = await dueTimes(db, 'beat')
    expect(new Set(due).size).toBe(due.length)
    expect(due).toEqual(due.map((_, index) => first + index * everyMs))
    expect(due.length).toBeGreaterThan(kills * 2)
  }, 120_000)
})
