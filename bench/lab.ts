import { fork, type ChildProcess } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createNodePostgresDb } from '../src/db/drivers/node-postgres.ts'
import { migrate } from '../src/db/migrate/migrate.ts'
import { readMigrationFiles } from '../src/db/migrate/node-files.ts'
import type { Db } from '../src/db/port.ts'
import { startEmbeddedPostgres } from '../src/embedded/embedded-postgres.ts'
import { silentLog } from '../src/system-ports.ts'

/** A fresh Postgres (the one that the tests bring, fsync on) and a receiver in a process of its own. */
export interface Lab {
  url: string
  db: Db
  receiver: Receiver
  close(): Promise<void>
}

/** The receiver, seen from here. */
export interface Receiver {
  url: string
  /** `done` resolves when `count` requests have arrived from now on. */
  expect(count: number): Promise<{ done: Promise<void> }>
  /** `at` resolves with the time (hrtime, ns) at which the next request arrived. */
  next(): Promise<{ at: Promise<bigint> }>
}

export async function openLab(): Promise<Lab> {
  const dataDir = await mkdtemp(join(tmpdir(), 'millrace-bench-'))
  const server = await startEmbeddedPostgres({ dataDir, log: silentLog })
  const db = createNodePostgresDb({ url: server.url, maxConnections: 20 })
  await migrate(db, { files: await readMigrationFiles() })
  const child = fork(new URL('receiver.ts', import.meta.url), { execArgv: ['--import', 'tsx'] })
  const receiver = await createReceiver(child)
  return {
    url: server.url,
    db,
    receiver,
    async close() {
      child.kill()
      await db.close()
      await server.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

async function createReceiver(child: ChildProcess): Promise<Receiver> {
  const message = <T>(key: string): Promise<T> =>
    new Promise((resolve) => {
      const listen = (value: Record<string, T>): void => {
        if (!(key in value)) return
        child.off('message', listen)
        resolve(value[key] as T)
      }
      child.on('message', listen)
    })
  const port = await message<number>('port')
  async function expect(count: number): Promise<void> {
    const ready = message('ready')
    child.send({ expect: count })
    await ready
  }
  return {
    url: `http://127.0.0.1:${port}`,
    async expect(count) {
      const done = message<number>('done')
      await expect(count)
      return { done: done.then(() => {}) }
    },
    async next() {
      const at = message<string>('at')
      await expect(1)
      return { at: at.then(BigInt) }
    },
  }
}

/** Median, and the lowest and highest. */
export function spread(values: readonly number[]): { median: number; low: number; high: number } {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
  return { median: at(0.5), low: at(0), high: at(1) }
}

/** The value below which the given share lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}
