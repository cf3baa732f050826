import { sql } from 'drizzle-orm'
import type { Db } from '../../db/port.ts'
import { qualified, runQuery } from '../../db/run.ts'
import type { Clock } from '../../ports.ts'
import { sleep } from '../../sleep.ts'

/** How often the lease is looked at. A busy worker flushes every 100 ms. */
const lookMs = 40
/** A worker that has not been heard of for so long is gone, or idle with the lease: it asks before it sends. */
const giveUpMs = 3_000

/**
 * Waits until the worker that holds a webhook's lease knows of a change that was just made. Each of its
 * flushes renews the lease and tells it how the webhook stands, so once a second one has begun, the answer
 * of the first has arrived. Each look asks it for one, since a worker whose requests all hang has nothing to
 * write. No lease: nobody has to know.
 */
export async function awaitQuiet(db: Db, id: string, clock: Clock): Promise<void> {
  const seen = new Set<string>()
  const endAt = clock.now() + giveUpMs
  while (clock.now() < endAt) {
    const lease = await leaseOf(db, id)
    if (lease === null) return
    seen.add(lease)
    // the one that stood, and two more
    if (seen.size > 2) return
    await sleep(clock, lookMs)
  }
}

async function leaseOf(db: Db, id: string): Promise<string | null> {
  const [row] = await runQuery<{ lease: string | null }>(
    db,
    sql`select case when w.lease_until > clock_timestamp() then w.lease_token || ' ' || w.lease_until end as lease,
        (select ${qualified(db, 'wake_webhook')}(w.id) where w.lease_until > clock_timestamp())
      from ${db.tables.webhooks} w where w.id = ${id}::text`,
  )
  return row?.lease ?? null
}
