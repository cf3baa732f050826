import { MillraceError } from '../errors/millrace-error.ts'
import type { Db, DrizzlePg, Executor } from './port.ts'

/**
 * The writes of a batch: called once, it makes them with `{ tx }` (or as queries of `tx` itself) and returns
 * them without awaiting any.
 */
export type BatchWork<Items extends readonly unknown[]> = (tx: DrizzlePg) => readonly [...Items]

/** What the writes of a batch return, in their places. */
export type BatchResults<Items extends readonly unknown[]> = { [Place in keyof Items]: Awaited<Items[Place]> }

const batches = new WeakSet<DrizzlePg>()

/** Begins a batch's writes on `tx`; a query of Drizzle's runs once somebody asks for its result. */
export function startBatch<Items extends readonly unknown[]>(
  tx: DrizzlePg,
  work: BatchWork<Items>,
): Promise<unknown>[] {
  batches.add(tx)
  return work(tx).map((item) => Promise.resolve(item))
}

/** A batch where there are transactions: one of them. */
export function batchInTransaction<Items extends readonly unknown[]>(
  transaction: Db['transaction'],
  work: BatchWork<Items>,
): Promise<BatchResults<Items>> {
  return transaction(async ({ drizzle }) => {
    const items = startBatch(drizzle, work)
    const settled = Promise.allSettled(items)
    try {
      return (await Promise.all(items)) as BatchResults<Items>
    } finally {
      // nothing of it may be under way when the transaction ends
      await settled
    }
  })
}

/**
 * Refuses a write that needs an answer before its next statement: a batch gives none until it has committed.
 *
 * @throws TRANSACTION_UNSUPPORTED
 */
export function assertNoBatch({ drizzle }: Executor, write: string): void {
  if (!batches.has(drizzle)) return
  throw new MillraceError(
    'TRANSACTION_UNSUPPORTED',
    `${write} takes more than one statement, so it fits into no batch: do it alone, or in a transaction`,
  )
}
