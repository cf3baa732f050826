import { describe, expect, it } from 'vitest'
import { MillraceError } from '../../src/errors/millrace-error.ts'
import { createSystemPorts, silentLog } from '../../src/system-ports.ts'
import { createTroubles } from '../../src/webhooks/engine/troubles.ts'
import { countStatements, kindOf } from './support/counting-db.ts'
import { createWorld } from './support/world.ts'

const ahead = new MillraceError('OFFSET_AHEAD', 'offset 9 lies beyond 5')
const away = new MillraceError('DATABASE_UNAVAILABLE', 'no answer')

function troublesAt(now: { ms: number }) {
  const said: string[] = []
  const clock = { ...createSystemPorts().clock, now: () => now.ms }
  const log = {
    ...silentLog,
    warn: (facts: object, message: string) => void said.push(JSON.stringify(facts) + message),
  }
  return { said, ...createTroubles({ clock, log }) }
}

describe('troubles with the database', () => {
  it('of an offset beyond its end are looked at ever more rarely, and told ever more rarely', () => {
    const now = { ms: 0 }
    const { met, said } = troublesAt(now)
    const pauses: number[] = []
    while (now.ms < 3_600_000) {
      const pause = met(ahead, 'wh_a')
      pauses.push(pause)
      now.ms += pause
    }
    expect(pauses.slice(0, 8)).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000])
    expect(said.length).toBeLessThanOrEqual(6)
    expect(said[0]).toContain('millrace webhooks seek')
    expect(said[0]).toContain('wh_a')
  })

  it('of one that is away are tried each second, told once a minute and then more rarely', () => {
    const now = { ms: 0 }
    const { met, said } = troublesAt(now)
    for (; now.ms < 59_000; now.ms += 1000) expect(met(away, 'wh_a')).toBe(1000)
    expect(said).toHaveLength(1)
    met(away, 'wh_b')
    expect(said).toHaveLength(2)
    for (; now.ms < 600_000; now.ms += 1000) met(away, 'wh_a')
    expect(said.length).toBeLessThanOrEqual(6)
  })

  it('that were over begin anew', () => {
    const now = { ms: 0 }
    const { met, said } = troublesAt(now)
    for (let times = 0; times < 4; times++) now.ms += met(ahead, 'wh_a')
    now.ms += 3_600_000
    expect(met(ahead, 'wh_a')).toBe(1000)
    expect(said).toHaveLength(2)
  })

  it('are told once of a webhook that has come further than its restored database', async () => {
    const world = await createWorld()
    try {
      await world.webhook()
      const [offset] = await world.publish(['k'])
      // what is due lets it be claimed; then it reads on from where the lost database was
      await world.sql(
        `insert into millrace.deliveries (webhook_id, "offset", unit, state, attempts, due_at)
         select id, $1, 'k', 'retrying', 1, now() from millrace.webhooks`,
        [offset],
      )
      await world.sql(`update millrace.webhooks set "offset" = 1000000, due_at = now()`)
      const said: string[] = []
      const log = { ...silentLog, warn: (_facts: object, message: string) => void said.push(message) }
      const counting = countStatements(world.db)
      world.start({ db: counting.db, ports: { ...createSystemPorts(), log } })
      const reads = (): number => counting.statements.filter((text) => kindOf(text) === 'read').length
      await world.until('select 1', () => reads() >= 3)
      expect(said).toEqual([expect.stringContaining('millrace webhooks seek')])
    } finally {
      await world.close()
    }
  })
})
