import { invalidInput, MillraceError } from '../errors/millrace-error.ts'
import type { Db, DrizzlePg, Executor, TxOption } from './port.ts'

/**
 * The writes of a batch: called once, it makes them with `{ tx }` (or as queries of `tx` itself) and returns
 * them without awaiting any.
 */
export type BatchWork<Items extends readonly unknown[]> = (tx: DrizzlePg) => readonly [...Items]

/** What the writes of a batch return, in their places. */
export type BatchResults<Items extends readonly unknown[]> = { [Place in keyof Items]: Awaited<Items[Place]> }

const batches = new WeakSet<DrizzlePg>()

/** How many batches have their writes made on this very stack: what is called meanwhile is called by one of them. */
let making = 0

/** Begins a batch's writes on `tx`; a query of Drizzle's runs once somebody asks for its result. */
export function startBatch<Items extends readonly unknown[]>(
  tx: DrizzlePg,
  work: BatchWork<Items>,
): Promise<unknown>[] {
  batches.add(tx)
  making++
  try {
    return work(tx).map((item) => Promise.resolve(item))
  } finally {
    making--
  }
}

/**
 * Refuses what is called while a batch is made and would not be part of it: it would commit on its own, even when the
 * batch is refused. Whatever may wait for others before it comes to its executor asks this first.
 *
 * @throws INVALID_INPUT
 */
export function assertPartOfBatch(options: TxOption | undefined): void {
  if (making > 0 && options?.tx === undefined)
    throw invalidInput('tx', 'is missing: in a batch every call takes the tx that the batch gives')
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
