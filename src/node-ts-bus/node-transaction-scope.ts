import { AsyncLocalStorage } from 'node:async_hooks'
import type { SQL } from 'drizzle-orm'
import { PgDialect } from 'drizzle-orm/pg-core'
import type { DrizzlePg } from '../db/port.ts'

/** A client of `pg`, of Neon's driver or a transaction of PGlite: whatever runs a text with `$1` parameters. */
export interface QueryClient {
  query(text: string, values: unknown[]): Promise<unknown>
}

/** A transaction of the caller's: Drizzle's, or the client on which it was begun. */
export type TransactionClient = DrizzlePg | QueryClient

/** The transaction that everything runs in which a function does, and what that starts. */
export interface TransactionScope {
  readonly client: TransactionClient
  readonly tx: DrizzlePg
  /** Runs statements one after the other: handlers run side by side, a connection does not. */
  inTurn<T>(statement: () => Promise<T>): Promise<T>
}

/** Scopes of one transport; another's are not seen. */
export interface TransactionScopes {
  /** Undefined outside, and where the function has ended that the transaction was for. */
  current(): TransactionScope | undefined
  within<T>(client: TransactionClient, work: () => Promise<T>): Promise<T>
}

export function createTransactionScopes(): TransactionScopes {
  const storage = new AsyncLocalStorage<{ scope: TransactionScope; over: boolean }>()
  return {
    current() {
      const entered = storage.getStore()
      return entered === undefined || entered.over ? undefined : entered.scope
    },
    async within(client, work) {
      const entered = { scope: createScope(client), over: false }
      try {
        return await storage.run(entered, work)
      } finally {
        entered.over = true
      }
    },
  }
}

function createScope(client: TransactionClient): TransactionScope {
  let last: Promise<unknown> = Promise.resolve()
  return {
    client,
    tx: 'execute' in client ? client : overClient(client),
    inTurn(statement) {
      const mine = last.then(statement)
      last = mine.catch(() => {})
      return mine
    },
  }
}

const dialect = new PgDialect()

/** All that the queues do in a transaction is `execute`. */
function overClient(client: QueryClient): DrizzlePg {
  return {
    execute(statement: SQL) {
      const { sql, params } = dialect.sqlToQuery(statement)
      return client.query(sql, params)
    },
  } as unknown as DrizzlePg
}
