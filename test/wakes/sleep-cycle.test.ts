import { afterEach, describe, expect, it } from 'vitest'
import { silentLog } from '../../src/system-ports.ts'
import { createAgenda } from '../../src/wakes/agenda.ts'
import { createForwarder, type Forwarder } from '../../src/wakes/forwarder.ts'
import { createModeCell } from '../../src/wakes/modes.ts'
import { createPacer } from '../../src/wakes/poll-timer.ts'
import { createWakeRegistry } from '../../src/wakes/wake-signals.ts'
import { createDrivenClock } from '../support/clock.ts'

const minute = 60_000

let forwarder: Forwarder | undefined
afterEach(() => forwarder?.close())

/** A forwarder whose database refuses every connection. */
function refused() {
  const clock = createDrivenClock()
  let attempts = 0
  forwarder = createForwarder({
    connect: () => {
      attempts += 1
      return Promise.reject(new Error('refused'))
    },
    schema: 'millrace',
    ports: { clock, random: () => 0, log: silentLog },
    sleep: { afterMs: minute, maxMs: 60 * minute },
  })
  const seat = forwarder.agenda.join()
  forwarder.start()
  /** How many attempts each of the next minutes sees. */
  const perMinute = async (minutes: number): Promise<number[]> => {
    const counts: number[] = []
    for (let n = 0; n < minutes; n++) {
      const before = attempts
      await clock.advance(minute)
      counts.push(attempts - before)
    }
    return counts
  }
  return { clock, seat, forwarder, perMinute }
}

describe('a database that refuses, of a forwarder that may sleep', () => {
  it('is asked for a minute, and then for ten seconds after one, two, four … minutes', async () => {
    const { seat, perMinute, forwarder } = refused()
    seat.rest(Infinity)
    const counts = await perMinute(33)
    expect(forwarder.mode).toBe('sleeping')
    const busy = counts.flatMap((count, index) => (count > 0 ? [index] : []))
    expect(busy).toEqual([0, 1, 2, 4, 8, 16, 32])
    // at most two a second
    expect(counts[0]).toBeLessThanOrEqual(125)
    for (const index of busy.slice(2)) expect(counts[index]).toBeLessThanOrEqual(26)
    expect(forwarder.lastError).toMatchObject({ code: expect.any(String) as string })
  })

  it('is asked for a minute again when somebody rings', async () => {
    const { seat, clock, perMinute, forwarder } = refused()
    seat.rest(Infinity)
    await perMinute(10)
    expect(await perMinute(1)).toEqual([0])
    forwarder.ring('all')
    // the nap ends now, not at the end of the next minute
    await clock.advance(0)
    const [first] = await perMinute(1)
    expect(first).toBeGreaterThan(100)
    expect(forwarder.mode).toBe('sleeping')
  })

  it('is not asked again before it is due, however often loops look at the time', async () => {
    const { seat, clock, perMinute, forwarder } = refused()
    seat.rest(clock.now() + 90 * minute)
    await perMinute(10)
    seat.rest(clock.now() + 80 * minute)
    expect(await perMinute(5)).toEqual([0, 0, 0, 0, 0])
    expect(forwarder.mode).toBe('sleeping')
  })
})

describe('a loop of a process whose forwarder sleeps', () => {
  it('begins nothing, due or woken, before the forwarder is back', async () => {
    const clock = createDrivenClock()
    const modes = createModeCell()
    const agenda = createAgenda(clock)
    const registry = createWakeRegistry(clock)
    const pacer = createPacer({ ports: { clock, random: () => 0 }, modes, agenda })
    modes.set('sleeping')
    const ended: string[] = []
    const dueAt = clock.now() + 1_000
    void pacer.wait({ wake: registry.subscribe('all'), dueAt }).then((outcome) => ended.push(outcome))
    expect([agenda.resting, agenda.nextDueAt]).toEqual([true, dueAt])
    registry.raise('all')
    await clock.advance(10 * minute)
    expect(ended).toEqual([])
    modes.set('listening')
    await clock.advance(0)
    expect(ended).toEqual(['wake'])
    expect(agenda.resting).toBe(false)
  })
})
