import type { Db, Executor } from '../../../src/db/port.ts'
import { deferred } from './deferred.ts'

/** A transaction that stays open until the test ends it. */
export interface Held {
  tx: Executor
  commit(): Promise<void>
  rollback(): Promise<void>
}

/** Opens a transaction and holds it. */
export async function holdTransaction(db: Db): Promise<Held> {
  const started = deferred<Executor>()
  const finished = deferred<void>()
  const given = new Error('rolled back by the test')
  const done = db.transaction(async (tx) => {
    started.resolve(tx)
    await finished.promise
  })
  done.catch(started.reject)
  return {
    tx: await started.promise,
    commit() {
      finished.resolve()
      return done
    },
    rollback() {
      finished.reject(given)
      return done.catch((error: unknown) => {
        if (error !== given) throw error
      })
    },
  }
}
