import { describe, expect, it } from 'vitest'
import { createAlarm } from '../../src/webhooks/engine/alarm.ts'
import { createChanges } from '../../src/webhooks/engine/changes.ts'
import { createDueRetries } from '../../src/webhooks/engine/due-retries.ts'
import type { DeliveryRow } from '../../src/webhooks/engine/flush-outcomes.ts'
import { createLease } from '../../src/webhooks/engine/lease.ts'
import { createLimiter, type Place } from '../../src/webhooks/engine/limiter.ts'
import { createPacing } from '../../src/webhooks/engine/pacing.ts'
import { createPageReader } from '../../src/webhooks/engine/page-reader.ts'
import { createSignal } from '../../src/webhooks/engine/signal.ts'
import type { EventPage } from '../../src/streams/read-events.ts'
import { createDrivenClock } from '../support/clock.ts'

function row(offset: number, state: DeliveryRow['state'], unit: string | null = 'u'): DeliveryRow {
  return { offset, unit, state, attempts: 1, delayMs: 0, status: null, error: null, answer: null }
}

describe('changes', () => {
  it('go back below anything newer when a flush fails', () => {
    const changes = createChanges()
    changes.put(row(1, 'retrying'))
    changes.put(row(2, 'blocked'))
    changes.failed()
    const taken = changes.take()
    changes.put(row(1, 'gone'))
    changes.succeeded()
    changes.promote('u')
    changes.giveBack(taken)
    const again = changes.take()
    expect([...again.rows.values()].map(({ offset, state }) => `${offset} ${state}`)).toEqual([
      '1 gone',
      '2 blocked',
    ])
    expect([again.succeeded, again.failed, [...again.promote]]).toEqual([true, false, ['u']])
  })

  it('tell rows that only wait from outcomes, also while they are on their way', () => {
    const changes = createChanges()
    changes.put(row(2, 'blocked'))
    expect([changes.hasRowsOf('u'), changes.hasOutcomesOf('u')]).toEqual([true, false])
    changes.put(row(1, 'gone'))
    changes.take()
    expect([changes.hasOutcomesOf('u'), changes.has(1), changes.dirty]).toEqual([true, true, false])
    changes.written()
    expect([changes.hasRowsOf('u'), changes.has(1)]).toEqual([false, false])
  })

  it('remember a failure only when no success came after it', () => {
    const changes = createChanges()
    changes.failed()
    changes.succeeded()
    expect(changes.take()).toMatchObject({ succeeded: true, failed: false })
    changes.succeeded()
    changes.failed()
    expect(changes.take()).toMatchObject({ succeeded: true, failed: true })
  })
})

describe('due retries', () => {
  it('are loaded when the first falls due, and not while a load runs', () => {
    const retries = createDueRetries()
    retries.due(1_000)
    expect(retries.loadInMs(400)).toBe(600)
    retries.beginLoad(1_000)
    expect(retries.loadInMs(1_001)).toBe(Infinity)
    retries.endLoad()
    expect(retries.loadInMs(1_002)).toBe(Infinity)
  })

  it('keep what a flush says while a load is underway', () => {
    const retries = createDueRetries()
    retries.due(0)
    retries.beginLoad(10)
    retries.due(50)
    retries.endLoad()
    expect(retries.loadInMs(20)).toBe(30)
  })

  it('are asked for once a second while some are in hand', () => {
    const retries = createDueRetries()
    retries.due(0)
    retries.beginLoad(0)
    retries.took(5)
    retries.endLoad()
    retries.due(0)
    expect(retries.loadInMs(100)).toBe(900)
    retries.gaveUp(5)
    expect(retries.loadInMs(100)).toBe(0)
  })

  it('are not taken twice: what was in hand when the load began may have changed since', () => {
    const retries = createDueRetries()
    retries.due(0)
    retries.took(5)
    retries.beginLoad(0)
    retries.gaveUp(5)
    expect([retries.isFresh(5), retries.isFresh(6)]).toEqual([false, true])
    retries.endLoad()
    expect(retries.isFresh(5)).toBe(true)
  })
})

describe('pacing', () => {
  it('spaces sends by the rate limit', async () => {
    const clock = createDrivenClock()
    const pacing = createPacing(clock, 10, 32)
    expect(pacing.waitMs()).toBe(0)
    pacing.sent()
    expect(pacing.waitMs()).toBe(0)
    pacing.sent()
    expect(pacing.waitMs()).toBe(100)
    await clock.advance(100)
    expect(pacing.waitMs()).toBe(0)
  })

  it('only probes an endpoint that fails ten times on end, until it succeeds', () => {
    const pacing = createPacing(createDrivenClock(), null, 32)
    for (let n = 0; n < 9; n++) pacing.outcome(false)
    expect(pacing.concurrency()).toBe(32)
    pacing.outcome(false)
    expect(pacing.concurrency()).toBe(1)
    pacing.outcome(true)
    expect(pacing.concurrency()).toBe(32)
  })
})

describe('the limiter', () => {
  it('bounds sends in all and per host, and lets what hangs no longer count (W4)', async () => {
    const clock = createDrivenClock()
    const limiter = createLimiter({ clock, total: 3, perHost: 2 })
    const [a, b] = [limiter.hold('a'), limiter.hold('b')]
    const first = limiter.tryEnter(a)
    expect([first, limiter.tryEnter(a)]).not.toContain(null)
    expect(limiter.tryEnter(a)).toBeNull()
    expect(limiter.tryEnter(b)).not.toBeNull()
    expect(limiter.tryEnter(b)).toBeNull()
    let freed = 0
    limiter.onFree(b, () => freed++)
    await clock.advance(999)
    expect([freed, limiter.tryEnter(b)]).toEqual([0, null])
    await clock.advance(1)
    expect(freed).toBe(1)
    expect(limiter.tryEnter(a)).not.toBeNull()
  })

  it('wakes no more than there are places, and everyone when nothing is on its way (W4)', () => {
    const limiter = createLimiter({ clock: createDrivenClock(), total: 2, perHost: 2 })
    const woken: string[] = []
    const [a, b] = ['a', 'b'].map((name) => limiter.tryEnter(limiter.hold(name))!) as [Place, Place]
    for (const name of ['a1', 'a2', 'b1', 'c1'])
      limiter.onFree(limiter.hold(name.slice(0, 1)), () => woken.push(name))
    limiter.leave(a)
    expect(woken).toEqual(['a1', 'b1'])
    limiter.leave(b)
    expect(woken.toSorted()).toEqual(['a1', 'a2', 'b1', 'c1'])
  })

  it('hands a place on to who has waited longest, however often they come back (W4)', () => {
    const limiter = createLimiter({ clock: createDrivenClock(), perHost: 1 })
    const taken: string[] = []
    const host = limiter.hold('a')
    let place = limiter.tryEnter(host)!
    function want(name: string): void {
      limiter.onFree(host, () => {
        const got = limiter.tryEnter(host)
        if (got === null) return want(name)
        place = got
        taken.push(name)
        want(name)
      })
    }
    for (const name of ['x', 'y', 'z']) want(name)
    for (let n = 0; n < 7; n++) limiter.leave(place)
    expect(taken.join('')).toBe('xyzxyzx')
  })

  it('counts a host once as long as somebody holds it or sends to it, and forgets it then', () => {
    const limiter = createLimiter({ clock: createDrivenClock(), perHost: 1 })
    const host = limiter.hold('a')
    expect(limiter.hold('a')).toBe(host)
    const place = limiter.tryEnter(host)!
    for (let users = 0; users < 2; users++) limiter.release(host)
    expect(limiter.hold('a')).toBe(host)
    limiter.release(host)
    limiter.leave(place)
    expect(limiter.hold('a')).not.toBe(host)
  })
})

describe('a lease', () => {
  it('ages at a third, and is not trusted from nine tenths on (W5)', async () => {
    const clock = createDrivenClock()
    const lease = createLease(clock, 1_000, clock.now())
    await clock.advance(333)
    expect([lease.isAgeing(), lease.isOverdue()]).toEqual([false, false])
    await clock.advance(1)
    expect(lease.isAgeing()).toBe(true)
    await clock.advance(567)
    expect(lease.isOverdue()).toBe(true)
    lease.renewedAt(clock.now())
    expect([lease.isAgeing(), lease.isOverdue()]).toEqual([false, false])
    lease.age()
    expect([lease.isAgeing(), lease.isOverdue()]).toEqual([true, false])
  })
})

describe('signals and alarms', () => {
  it('a signal that fires while nobody waits lets the next wait pass', async () => {
    const clock = createDrivenClock()
    const signal = createSignal(clock)
    signal.fire()
    expect(await signal.wait()).toBe(true)
    const waiting = signal.wait(50)
    await clock.advance(50)
    expect(await waiting).toBe(false)
    expect(clock.pending()).toBe(0)
  })

  it('of several wishes for an alarm the earliest counts', async () => {
    const clock = createDrivenClock()
    const rung: number[] = []
    const alarm = createAlarm(clock, () => rung.push(clock.now()))
    const start = clock.now()
    alarm.ring(500)
    alarm.ring(200)
    alarm.ring(300)
    await clock.advance(1_000)
    expect(rung).toEqual([start + 200])
  })
})

describe('the page reader', () => {
  function reader(pages: Record<number, EventPage>) {
    const reads: number[] = []
    const read = createPageReader(async (_stream, after) => {
      reads.push(after)
      return pages[after] ?? { events: [], next: after, horizon: after, more: false, held: false }
    })
    return { reads, read }
  }
  const event = (offset: number) => {
    return { offset, type: 't', key: null, dataText: '1', headers: null, publishedAt: new Date(0) }
  }
  const page: EventPage = {
    events: [event(3), event(6), event(9)],
    next: 9,
    horizon: 9,
    more: false,
    held: false,
  }

  it('reads a page once for all who ask at the same time, and for who stands within it later', async () => {
    const { reads, read } = reader({ 0: page })
    await Promise.all([read.read('s', 0), read.read('s', 0)])
    const rest = await read.read('s', 5)
    expect(rest.events.map(({ offset }) => offset)).toEqual([6, 9])
    expect((await read.read('s', 9)).events).toEqual([])
    expect(reads).toEqual([0])
  })

  it('asks again at the end of a page once a wake has come, but not before it', async () => {
    const { reads, read } = reader({ 0: page })
    await read.read('s', 0)
    read.wake('s')
    await read.read('s', 4)
    expect(reads).toEqual([0])
    await read.read('s', 9)
    await read.read('s', 9)
    expect(reads).toEqual([0, 9])
  })

  it('reads on where a stream was left, once for all, and not at all where it was never read', async () => {
    const { reads, read } = reader({ 0: page })
    await read.readOn('s')
    expect(reads).toEqual([])
    await read.read('s', 0)
    // nothing has happened since
    await read.readOn('s')
    expect(reads).toEqual([0])
    read.wake('s')
    await Promise.all([read.readOn('s'), read.read('s', 9)])
    expect(reads).toEqual([0, 9])
  })

  it('takes a stream that reaches further than was read for woken, and no other', async () => {
    const { read } = reader({ 0: page })
    await read.read('s', 0)
    read.reaches('s', 9)
    expect(read.generation('s')).toBe(0)
    read.reaches('s', 10)
    expect(read.generation('s')).toBe(1)
    // the page is older than the wake: even what it holds may have more behind it
    read.reaches('s', 9)
    expect(read.generation('s')).toBe(2)
  })

  it('does not share a read that began before a wake with who asks after it (S6)', async () => {
    const gates: (() => void)[] = []
    let reads = 0
    const read = createPageReader(async (_stream, after) => {
      reads++
      await new Promise<void>((resolve) => gates.push(resolve))
      return { events: [], next: after, horizon: after, more: false, held: false }
    })
    const before = read.read('s', 0)
    read.wake('s')
    const after = read.read('s', 0)
    for (const open of gates) open()
    const [first, second] = await Promise.all([before, after])
    expect(reads).toBe(2)
    expect([first.generation, second.generation]).toEqual([0, 1])
  })
})
