import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createUnits, unitOf, type Item } from '../../src/webhooks/engine/units.ts'

function itemAt(offset: number, key: string | null): Item {
  const event = { offset, type: 't', key, dataText: '{}', headers: null, publishedAt: new Date(0) }
  return { event, unit: key, attempts: 0, entry: null, hasRow: false }
}

const offsets = (items: readonly Item[]): number[] => items.map(({ event }) => event.offset)

describe('the units of a webhook', () => {
  it('name the whole stream, the key, or nothing', () => {
    const { event } = itemAt(1, 'k')
    expect([unitOf('stream', event), unitOf('key', event), unitOf('none', event)]).toEqual(['', 'k', null])
    expect(unitOf('key', itemAt(1, null).event)).toBeNull()
  })

  it('let one item of a unit go at a time, and the next when it is through (W3)', () => {
    const units = createUnits([])
    const [first, second, other] = [itemAt(1, 'a'), itemAt(2, 'a'), itemAt(3, 'b')]
    for (const item of [first, second, other]) expect(units.place(item)).toBe('accepted')
    expect(units.next()).toBe(first)
    expect(units.next()).toBe(other)
    expect(units.next()).toBeUndefined()
    units.left(first)
    expect(units.next()).toBe(second)
  })

  it('hand back what stood behind an item in trouble, and block what comes later', () => {
    const units = createUnits([])
    const items = [1, 2, 3].map((offset) => itemAt(offset, 'a'))
    for (const item of items) units.place(item)
    units.next()
    expect(offsets(units.troubled(items[0]!))).toEqual([2, 3])
    expect(units.place(itemAt(4, 'a'))).toBe('blocked')
    expect(units.place(itemAt(5, 'b'))).toBe('accepted')
    expect(units.troubledCount).toBe(1)
  })

  it('begin in trouble where rows were found at the claim', () => {
    const units = createUnits(['a'])
    expect(units.place(itemAt(1, 'a'))).toBe('blocked')
    expect(units.isAtRest('a')).toBe(true)
  })

  it('are out of trouble only when a reload finds nothing and nothing was added meanwhile (W1)', () => {
    const units = createUnits(['a'])
    units.reloadSoon('a')
    expect(units.takeReloads(() => true)).toEqual(['a'])
    expect(units.place(itemAt(7, 'a'))).toBe('blocked')
    units.loaded('a', [])
    expect(units.place(itemAt(8, 'a'))).toBe('blocked')
    expect(units.takeReloads(() => true)).toEqual(['a'])
    units.loaded('a', [])
    expect(units.place(itemAt(9, 'a'))).toBe('accepted')
    expect(units.troubledCount).toBe(0)
  })

  it('reload at once or after a flush, as asked, and only those that are ready', () => {
    const units = createUnits(['a', 'b'])
    units.reloadSoon('a')
    units.reloadAfterFlush('b')
    expect(units.takeReloads(() => false)).toEqual([])
    expect(units.isHeadless('b')).toBe(true)
    expect(units.takeReloads(() => true)).toEqual(['a'])
    expect(units.reloadsWanted).toBe(true)
    units.flushed()
    expect(units.takeReloads(() => true)).toEqual(['b'])
    units.waits('b')
    expect(units.isHeadless('b')).toBe(false)
  })

  it('forget what was accepted, but not what is in trouble', () => {
    const units = createUnits(['t'])
    units.place(itemAt(1, 'a'))
    units.place(itemAt(2, 'a'))
    units.clear()
    expect(units.hasReady).toBe(false)
    expect(units.place(itemAt(1, 'a'))).toBe('accepted')
    expect(units.place(itemAt(3, 't'))).toBe('blocked')
  })

  const script = fc.record({
    keys: fc.array(fc.constantFrom('a', 'b', 'c', null), { maxLength: 40 }),
    // for each choice: take one more event, or end one of those being sent, well or badly
    choices: fc.array(fc.record({ what: fc.constantFrom('place', 'ok', 'fail'), which: fc.nat(10) }), {
      maxLength: 200,
    }),
  })

  it('keep each unit in order and lose nothing, however sends end (W1, W3)', () => {
    fc.assert(
      fc.property(script, ({ keys, choices }) => {
        const units = createUnits([])
        const sending: Item[] = []
        /** The database: what is recorded, by unit, in order. */
        const recorded: Item[] = []
        const through: Item[] = []
        let taken = 0
        const dispatch = (): void => {
          for (let item = units.next(); item !== undefined; item = units.next()) sending.push(item)
          const busy = sending.map(({ unit }) => unit).filter((unit) => unit !== null)
          expect(new Set(busy).size).toBe(busy.length)
        }
        const place = (): void => {
          if (taken >= keys.length) return
          const item = itemAt(++taken, keys[taken - 1]!)
          if (units.place(item) === 'blocked') recorded.push(item)
        }
        const reload = (): void => {
          for (const unit of units.takeReloads(() => true)) {
            const rest = recorded.filter((item) => item.unit === unit)
            recorded.splice(0, recorded.length, ...recorded.filter((item) => item.unit !== unit))
            units.loaded(unit, rest)
          }
        }
        const end = (which: number, well: boolean): void => {
          const item = sending.splice(which % Math.max(sending.length, 1), 1)[0]
          if (item === undefined) return
          if (well) {
            units.left(item)
            through.push(item)
          } else {
            recorded.push(...units.troubled(item))
            // it is due again at once
            if (item.unit === null) units.place(item)
            else {
              const rest = recorded.filter(({ unit }) => unit === item.unit)
              recorded.splice(0, recorded.length, ...recorded.filter(({ unit }) => unit !== item.unit))
              units.loaded(item.unit, [item, ...rest.toSorted((a, b) => a.event.offset - b.event.offset)])
            }
          }
        }
        const act = {
          place: () => place(),
          ok: (n: number) => end(n, true),
          fail: (n: number) => end(n, false),
        }
        for (const { what, which } of choices) {
          act[what as keyof typeof act](which)
          reload()
          dispatch()
        }
        while (taken < keys.length) place()
        for (dispatch(); sending.length > 0; dispatch()) {
          end(0, true)
          reload()
        }
        expect(offsets(through).toSorted((a, b) => a - b)).toEqual(keys.map((_, index) => index + 1))
        for (const key of ['a', 'b', 'c']) {
          const order = offsets(through.filter(({ unit }) => unit === key))
          expect(order).toEqual(order.toSorted((a, b) => a - b))
        }
      }),
      { numRuns: 300 },
    )
  })
})
