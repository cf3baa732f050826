import { sql } from 'drizzle-orm'
import { toNumber, toNumbers } from '../db/decode.ts'
import { executorFor, type Db, type TxOption } from '../db/port.ts'
import { qualified, runQuery } from '../db/run.ts'
import { assertSharedName } from '../schema/names.ts'
import type { NewMessage } from './message.ts'
import { sendArguments } from './send-arguments.ts'

/** What {@link sendMessages} returns. */
export interface Sent {
  /** The database's number of the queue, by which wakes name it. */
  queueId: number
  /** In the order given. */
  messages: SentMessage[]
}

/** What became of one message. */
export interface SentMessage {
  /** Its number; of a duplicate, the number of the message that has the dedupe key. */
  id: number
  /** Its dedupe key was taken, so it was not sent. */
  duplicate: boolean
}

/**
 * Sends messages to a queue, all or none, making the queue with its first. One round trip, one
 * statement. Outside a transaction it commits by itself and wakes workers after the commit; with
 * `{ tx }` the messages, and the wake, come with the caller's commit (Q3).
 *
 * @throws INVALID_NAME, INVALID_INPUT, INVALID_JSON, JSON_TOO_DEEP
 */
export async function sendMessages(
  db: Db,
  queue: string,
  messages: readonly NewMessage[],
  options: TxOption = {},
): Promise<Sent> {
  assertSharedName('queue', queue)
  const args = sendArguments(messages)
  const on = executorFor(db, options)
  const statement =
    options.tx === undefined
      ? sql`call ${qualified(on, 'send')}(${queue}::text, ${args}, null, null, null)`
      : sql`select s.o_queue_id, s.o_ids, s.o_sent,
          case when coalesce(s.o_sent, s.o_ids) <> '{}' then ${qualified(on, 'wake_queue')}(s.o_queue_id) end
        from ${qualified(on, 'send_messages')}(${queue}::text, ${args}) s`
  const [row] = await runQuery<{ o_queue_id: number; o_ids: unknown; o_sent: unknown }>(on, statement)
  if (row === undefined) throw new Error('send returned no row')
  // null: all of them
  const sent = row.o_sent === null ? null : new Set(toNumbers(row.o_sent))
  return {
    queueId: toNumber(row.o_queue_id),
    messages: toNumbers(row.o_ids).map((id, index) => ({
      id,
      duplicate: sent !== null && !sent.has(index + 1),
    })),
  }
}
