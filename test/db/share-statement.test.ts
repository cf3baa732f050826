import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { shareStatement } from '../../src/db/share-statement.ts'
import { createDeferred } from '../../src/wakes/deferred.ts'

describe('calls that share a statement', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => {
    vi.restoreAllMocks()
    vi.useRealTimers()
  })

  it('go together when they come while one is under way, each with its own results', async () => {
    const patience = watchPatience()
    const first = createDeferred<void>()
    const seen: (readonly number[])[] = []
    const onIdle = vi.fn<() => void>()
    const share = shareStatement<number, string>(
      async (items) => {
        seen.push(items)
        if (seen.length === 1) await first.promise
        return items.map((item) => `r${item}`)
      },
      { maxItems: 3, onIdle },
    )
    const calls = [share([1]), share([2, 3]), share([4]), share([5, 6, 7, 8]), share([])]
    first.resolve()
    expect(await Promise.all(calls)).toEqual([['r1'], ['r2', 'r3'], ['r4'], ['r5', 'r6', 'r7', 'r8'], []])
    expect(seen).toEqual([[1], [2, 3, 4], [5, 6, 7, 8], []])
    await vi.waitFor(() => expect(onIdle).toHaveBeenCalledOnce())
    expect(await share([9])).toEqual(['r9'])
    await vi.waitFor(() => expect(patience.left()).toBe(0))
  })

  it('fail together, and leave the next ones alone', async () => {
    let runs = 0
    const share = shareStatement<number, number>(
      async (items) => {
        if (++runs === 2) throw new Error('lost')
        return items
      },
      { maxItems: 10 },
    )
    const outcomes = await Promise.allSettled([share([1]), share([2]), share([3])])
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected'])
    expect(await share([4])).toEqual([4])
    expect(runs).toBe(3)
  })

  it("are run one by one when a failure is one's own fault, and nobody fails for another", async () => {
    const seen: (readonly number[])[] = []
    const share = shareStatement<number, number>(
      async (items) => {
        seen.push(items)
        if (items.includes(3)) throw new Error('refused')
        return items
      },
      { maxItems: 10, isOnesFault: (error) => (error as Error).message === 'refused' },
    )
    const outcomes = await Promise.allSettled([share([1]), share([2]), share([3]), share([4, 5])])
    expect(outcomes.map((one) => (one.status === 'fulfilled' ? one.value : 'refused'))).toEqual([
      [1],
      [2],
      'refused',
      [4, 5],
    ])
    expect(seen).toEqual([[1], [2, 3, 4, 5], [2], [3], [4, 5]])
  })

  it('wait for a statement that hangs a tenth of a second and no longer, and four hang at most', async () => {
    const patience = watchPatience()
    const seen: (readonly number[])[] = []
    const hanging = createDeferred<void>()
    const share = shareStatement<number, number>(
      async (items) => {
        seen.push(items)
        if (items[0]! < 10) await hanging.promise
        return items
      },
      { maxItems: 1 },
    )
    const calls = [1, 2, 3, 4, 5, 10].map((item) => share([item]))
    expect(seen).toEqual([[1]])
    await vi.advanceTimersByTimeAsync(99)
    expect(seen).toEqual([[1]])
    await vi.advanceTimersByTimeAsync(1)
    expect(seen).toEqual([[1], [2]])
    await vi.advanceTimersByTimeAsync(1000)
    expect(seen).toEqual([[1], [2], [3], [4]])
    hanging.resolve()
    expect(await Promise.all(calls)).toEqual([[1], [2], [3], [4], [5], [10]])
    await vi.waitFor(() => expect(patience.left()).toBe(0))
  })
})

/** The timers of a tenth of a second: others may be set meanwhile, by what an earlier file has left to end. */
function watchPatience(): { left(): number } {
  const set = vi.spyOn(globalThis, 'setTimeout')
  const cleared = vi.spyOn(globalThis, 'clearTimeout')
  return {
    left() {
      const gone = new Set(cleared.mock.calls.map(([timer]) => timer))
      return set.mock.results.filter(({ value }, n) => set.mock.calls[n]![1] === 100 && !gone.has(value))
        .length
    },
  }
}
