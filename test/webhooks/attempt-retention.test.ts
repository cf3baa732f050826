import { sql } from 'drizzle-orm'
import { expect, it } from 'vitest'
import { removeOldAttempts } from '../../src/webhooks/attempt-retention.ts'
import { createWorld } from '../delivery/support/world.ts'

it('removes attempts older than 30 days, and what goes beyond the cap of a webhook, the oldest first', async () => {
  const world = await createWorld()
  const { db } = world
  const [one, two] = [await world.webhook(), await world.webhook()]
  const log = (id: string, count: number, days: number) =>
    db.drizzle
      .execute(sql`insert into ${db.tables.attempts} (webhook_id, "offset", attempt, at, duration_ms, outcome)
      select ${id}, n, 1, now() - ${days} * interval '1 day', 1, 'retry' from generate_series(1, ${count}) n`)
  await log(one.id, 2_500, 31)
  await log(one.id, 1_200, 29)
  await log(two.id, 50, 29)
  expect(await removeOldAttempts(db, { isOver: () => true })).toBe(0)
  expect(await removeOldAttempts(db, { maxPerWebhook: 100 })).toBe(2_500 + 1_100)
  const left = await world.sql(
    `select webhook_id, count(*)::integer as n, min("offset")::integer as first from millrace.attempts group by 1 order by 2`,
  )
  expect(left).toEqual([
    { webhook_id: two.id, n: 50, first: 1 },
    { webhook_id: one.id, n: 100, first: 1_101 },
  ])
  expect(await removeOldAttempts(db, { maxPerWebhook: 100 })).toBe(0)
  await world.close()
})
