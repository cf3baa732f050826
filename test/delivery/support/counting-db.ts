import type { SQL } from 'drizzle-orm'
import { PgDialect } from 'drizzle-orm/pg-core'
import type { Db } from '../../../src/db/port.ts'

/** A database that keeps the text of every statement that goes through it, and can be made to fail. */
export interface CountingDb {
  db: Db
  /** In the order they were sent. */
  statements: string[]
  /** How many were sent and not yet answered, or failed. */
  underWay(): number
  /** Called with each statement before it is sent; what it throws is what the caller gets. */
  before(hook: (text: string) => void | Promise<void>): void
  /** Called after each statement was answered; what it throws the caller gets instead of the answer. */
  after(hook: (text: string) => void | Promise<void>): void
}

/** @param db all statements of the delivery engine go through `execute` */
export function countStatements(db: Db): CountingDb {
  const statements: string[] = []
  const dialect = new PgDialect()
  let underWay = 0
  let before: (text: string) => void | Promise<void> = () => {}
  let after: (text: string) => void | Promise<void> = () => {}

  async function execute(query: SQL): Promise<unknown> {
    const { sql: text } = dialect.sqlToQuery(query)
    statements.push(text)
    await before(text)
    underWay++
    const answer: unknown = await db.drizzle.execute(query).finally(() => underWay--)
    await after(text)
    return answer
  }

  const drizzle = new Proxy(db.drizzle, {
    get: (target, name) => (name === 'execute' ? execute : (Reflect.get(target, name) as unknown)),
  })
  return {
    db: { ...db, drizzle },
    statements,
    underWay: () => underWay,
    before: (hook) => void (before = hook),
    after: (hook) => void (after = hook),
  }
}

/** What a statement of the engine is for. */
export function kindOf(text: string): 'claim' | 'read' | 'flush' | 'load' | 'other' {
  if (text.includes('heads as materialized')) return 'claim'
  if (text.includes('read_events')) return 'read'
  if (text.includes('flush_outcomes')) return 'flush'
  return text.includes('due_in_ms') ? 'load' : 'other'
}
