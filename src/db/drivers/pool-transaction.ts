import type { DrizzlePg } from '../port.ts'
import { isMillraceError } from '../../errors/millrace-error.ts'
import { translateError } from '../translate-error.ts'
import type { GuardedPool, PooledClient } from './pool.ts'
import { storeClosed } from './store-closed.ts'

/** A Drizzle database over one client, as far as transactions go. */
export interface Transactional {
  transaction<T>(work: (tx: never) => Promise<T>, config: { isolationLevel: 'read committed' }): Promise<T>
}

/**
 * A transaction on a pooled client. Drizzle's own over a pool leaks the client when BEGIN fails, and
 * hides the caller's error behind that of a ROLLBACK on a dead connection.
 *
 * What `work` rejects with comes out as it is; failures of BEGIN and COMMIT are translated. Where the
 * connection was lost because `close` cut it, it is STORE_CLOSED.
 */
export async function transactionOn<Client extends PooledClient, T>(
  pool: GuardedPool<Client>,
  toDrizzle: (client: Client) => Transactional,
  work: (tx: DrizzlePg) => Promise<T>,
): Promise<T> {
  const client = await pool.acquire().catch((error: unknown) => {
    throw translateError(error)
  })
  let failure: { error: unknown } | undefined
  let reusable = false
  try {
    const result = await toDrizzle(inTurn(client)).transaction(
      (tx) =>
        work(tx).catch((error: unknown) => {
          failure = { error }
          throw error
        }),
      // streams are read at no other level, whatever the database's default is
      { isolationLevel: 'read committed' },
    )
    reusable = true
    return result
  } catch (error) {
    const thrown = failure === undefined ? translateError(error) : failure.error
    // otherwise the rollback failed too
    reusable = failure !== undefined && error === failure.error
    throw pool.cut && isConnectionLoss(thrown) ? storeClosed() : thrown
  } finally {
    client.release(!reusable)
  }
}

function isConnectionLoss(error: unknown): boolean {
  return isMillraceError(error) && error.code === 'DATABASE_UNAVAILABLE'
}

/** A client whose queries wait for one another: `pg` itself is to give that up in its next version. */
function inTurn<Client extends PooledClient>(client: Client): Client {
  const { query } = client as unknown as { query(...args: unknown[]): Promise<unknown> }
  let last: Promise<unknown> = Promise.resolve()
  const queued = {
    query(...args: unknown[]) {
      const answer = last.then(() => query.apply(client, args))
      last = answer.catch(() => {})
      return answer
    },
  }
  return queued as unknown as Client
}
