import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { countStatements, kindOf } from './support/counting-db.ts'
import { createWorld, type World } from './support/world.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const busy = 10
const rounds = 12

/** Registers webhooks on streams of their own, a thousand of them, where nothing is ever published. */
async function seedIdle(world: World, count: number): Promise<void> {
  await world.sql(`insert into millrace.streams (name) select 'idle-' || n from generate_series(0, 999) n`)
  await world.sql(
    `insert into millrace.webhooks (id, stream_id, url, ordering, format, signature, state, max_attempts, timeout_ms, "offset")
     select 'wh_' || lpad(n::text, 20, '0'), s.id, 'http://127.0.0.1:9/' || repeat('x', 500), 'key', 'standard', 'v1',
       'active', 10, 15000, 0
     from generate_series(1, $1::integer) n join millrace.streams s on s.name = 'idle-' || n % 1000`,
    [count],
  )
  await world.sql(
    `insert into millrace.webhook_secrets (id, webhook_id, sealed)
     select 's' || w.id, w.id, 'whsec_' || repeat('x', 32) from millrace.webhooks w`,
  )
  await world.sql('analyze')
}

interface Cost {
  statements: Record<string, number>
  heapBytes: number
}

/** What it costs to deliver some events to the busy webhooks, one event after the other. */
async function costWith(idle: number): Promise<Cost> {
  const world = await createWorld()
  try {
    if (idle > 0) await seedIdle(world, idle)
    for (let n = 0; n < busy; n++) await world.webhook({ path: `/busy-${n}` })
    const counting = countStatements(world.db)
    let claims = 0
    // as quiet as a drain between events, so that each event costs the same
    world.start({ db: counting.db, engine: { lingerMs: 0 }, onClaim: () => void claims++ })
    await world.until('select 1', () => claims > 0)
    for (let round = 1; round <= rounds; round++) {
      await world.publish(['k'])
      await world.receiver.waitFor(round * busy, 20_000)
      await world.until<{ count: number }>(
        'select count(*)::integer as count from millrace.webhooks where lease_token is not null',
        ([row]) => row?.count === 0,
      )
    }
    collectGarbage()
    const statements: Record<string, number> = {}
    for (const text of counting.statements) statements[kindOf(text)] = (statements[kindOf(text)] ?? 0) + 1
    return { statements, heapBytes: process.memoryUsage().heapUsed }
  } finally {
    await world.close()
  }
}

describe('webhooks that have nothing to do', () => {
  it('cost neither statements nor memory: 10,000 with 9,990 of them idle are as cheap as ten', async () => {
    // the first run also pays for what is loaded once
    await costWith(0)
    const few = await costWith(0)
    const many = await costWith(10_000 - busy)
    const total = (cost: Cost): number =>
      Object.values(cost.statements).reduce((sum, count) => sum + count, 0)
    process.stdout.write(
      `ten webhooks: ${JSON.stringify(few)}; 10,000 with 9,990 idle: ${JSON.stringify(many)}\n`,
    )
    expect(total(few)).toBeGreaterThan(rounds * 3)
    // how flushes fall together varies by a few
    expect(total(many)).toBeLessThan(total(few) * 1.3 + 5)
    // a row of each alone would be 6 MB
    expect(many.heapBytes - few.heapBytes).toBeLessThan(3_000_000)
  })
})
