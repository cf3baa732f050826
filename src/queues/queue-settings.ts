import { sql } from 'drizzle-orm'
import { toNumber } from '../db/decode.ts'
import { executorFor, type Db, type TxOption } from '../db/port.ts'
import { qualified, runQuery } from '../db/run.ts'
import { assertSharedName } from '../schema/names.ts'
import { wholeNumber } from './validate-message.ts'

/** What can be set for a queue. */
export interface QueueSettings {
  /** How long finished messages are kept, from 1 up; null: they go at once, which is the default. */
  retainFinishedMs: number | null
}

/**
 * Finds a queue or makes it. Returns its number, by which wakes name it (`q` and the number).
 *
 * @throws INVALID_NAME
 */
export async function ensureQueue(db: Db, queue: string, options: TxOption = {}): Promise<number> {
  assertSharedName('queue', queue)
  const on = executorFor(db, options)
  const [row] = await runQuery<{ id: number }>(
    on,
    sql`select ${qualified(on, 'ensure_queue')}(${queue}::text) as id`,
  )
  return toNumber(row?.id)
}

/**
 * Sets what is to hold for a queue, making the queue if need be. It holds for what finishes from now on.
 *
 * @throws INVALID_NAME, INVALID_INPUT
 */
export async function configureQueue(
  db: Db,
  queue: string,
  settings: QueueSettings,
  options: TxOption = {},
): Promise<void> {
  assertSharedName('queue', queue)
  const { retainFinishedMs } = settings
  if (retainFinishedMs !== null) wholeNumber(retainFinishedMs, 'retainFinishedMs', 1, 10 * 366 * 86_400_000)
  const on = executorFor(db, options)
  await runQuery(
    on,
    sql`insert into ${on.tables.queues} (name, retain_finished_ms)
      values (${queue}::text, ${retainFinishedMs}::bigint)
      on conflict (name) do update set retain_finished_ms = excluded.retain_finished_ms`,
  )
}
