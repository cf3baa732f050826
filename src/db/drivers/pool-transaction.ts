import type { DrizzlePg } from '../port.ts'
import { translateError } from '../translate-error.ts'
import type { GuardedPool, PooledClient } from './pool.ts'

/** A Drizzle database over one client, as far as transactions go. */
export interface Transactional {
  transaction<T>(work: (tx: never) => Promise<T>, config: { isolationLevel: 'read committed' }): Promise<T>
}

/**
 * A transaction on a pooled client. Drizzle's own over a pool leaks the client when BEGIN fails, and
 * hides the caller's error behind that of a ROLLBACK on a dead connection.
 *
 * What `work` rejects with comes out as it is; failures of BEGIN and COMMIT are translated.
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
    if (failure === undefined) throw translateError(error)
    // otherwise the rollback failed too
    reusable = error === failure.error
    throw failure.error
  } finally {
    client.release(!reusable)
  }
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
