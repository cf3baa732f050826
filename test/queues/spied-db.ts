import type { SQL } from 'drizzle-orm'
import { PgDialect } from 'drizzle-orm/pg-core'
import type { Db } from '../../src/db/port.ts'

/** A database that counts the statements that go through it, and can be told to lose some. */
export interface SpiedDb {
  db: Db
  /** How many statements called this function so far. */
  calls(name: string): number
  /** Resolves as soon as so many statements that call the function have been answered. */
  waitForCalls(name: string, count: number): Promise<void>
  /** The next so many statements that call the function fail as on a broken connection. */
  lose(name: string, count: number): void
}

const dialect = new PgDialect()

export function spyOn(db: Db): SpiedDb {
  const answered = new Map<string, number>()
  const losses = new Map<string, number>()
  const watchers = new Set<() => void>()
  const count = (name: string): number => answered.get(name) ?? 0

  async function execute(statement: SQL): Promise<unknown> {
    const name = /"millrace"\."(\w+)"\(/.exec(dialect.sqlToQuery(statement).sql)?.[1] ?? 'other'
    try {
      const left = losses.get(name) ?? 0
      losses.set(name, Math.max(0, left - 1))
      if (left > 0) throw Object.assign(new Error('lost'), { code: '08006' })
      return await db.drizzle.execute(statement)
    } finally {
      answered.set(name, count(name) + 1)
      // after whoever awaits the answer has had it
      setImmediate(() => watchers.forEach((watcher) => watcher()))
    }
  }
  const drizzle = new Proxy(db.drizzle, {
    get: (target, property) => (property === 'execute' ? execute : Reflect.get(target, property, target)),
  })
  return {
    db: Object.assign(Object.create(db) as Db, { drizzle }),
    calls: count,
    waitForCalls(name, wanted) {
      return new Promise((resolve) => {
        const watcher = (): void => {
          if (count(name) < wanted) return
          watchers.delete(watcher)
          resolve()
        }
        watchers.add(watcher)
        setImmediate(watcher)
      })
    },
    lose: (name, some) => void losses.set(name, some),
  }
}
