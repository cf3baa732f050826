import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createWindow, type WindowEntry } from '../../src/webhooks/engine/window.ts'

describe('the window of a webhook', () => {
  it('stores up to the first event that is not settled, and no further (W1)', () => {
    const window = createWindow(10)
    const [a, b, c] = [11, 14, 20].map((offset) => window.add(offset, 5))
    expect(window.lowWater()).toBe(10)
    window.settle(b!)
    expect(window.lowWater()).toBe(10)
    window.settle(a!)
    expect(window.lowWater()).toBe(19)
    window.settle(c!)
    window.scannedTo(25)
    expect(window.lowWater()).toBe(25)
    expect(window.bytes).toBe(0)
  })

  it('counts what is settled until the database has it: that is what a crash sends again', () => {
    const window = createWindow(0)
    const entries = [1, 2, 3].map((offset) => window.add(offset, 1))
    for (const entry of entries.slice(0, 2)) window.settle(entry)
    expect([window.size, window.storable]).toEqual([3, 2])
    window.stored(1)
    expect([window.size, window.storable]).toEqual([2, 1])
    window.stored(2)
    expect([window.size, window.storable]).toEqual([1, 0])
  })

  it('reads again what it was set back over', () => {
    const window = createWindow(0)
    const entries = [1, 2, 3].map((offset) => window.add(offset, 7))
    window.settle(entries[0]!)
    window.settle(entries[1]!)
    window.rewind(2)
    expect([window.scanned, window.lowWater(), window.bytes]).toEqual([2, 2, 0])
    window.settle(entries[2]!)
    expect([window.lowWater(), window.open]).toEqual([2, 0])
    const again = window.add(3, 7)
    expect([window.lowWater(), window.open, window.bytes]).toEqual([2, 1, 7])
    window.settle(again)
    window.settle(again)
    expect([window.lowWater(), window.open, window.bytes]).toEqual([3, 0, 0])
  })

  it('never stores beyond an event that is not settled, whatever the order (W1)', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom('add', 'settle', 'store'), fc.nat(50)), { maxLength: 200 }),
        (steps) => {
          const window = createWindow(0)
          const entries: WindowEntry[] = []
          let stored = 0
          for (const [what, number] of steps) {
            if (what === 'add') entries.push(window.add(window.scanned + 1 + (number % 3), 1))
            const entry = entries[number % Math.max(1, entries.length)]
            if (what === 'settle' && entry !== undefined) window.settle(entry)
            if (what === 'store') window.stored((stored = window.lowWater()))
            const open = entries.find(({ settled }) => !settled)
            expect(window.lowWater()).toBe(open === undefined ? window.scanned : open.offset - 1)
            expect(window.open).toBe(entries.filter(({ settled }) => !settled).length)
            expect(window.size).toBe(entries.filter(({ offset }) => offset > stored).length)
          }
        },
      ),
    )
  })
})
