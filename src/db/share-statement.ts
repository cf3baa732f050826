import type { Db } from './port.ts'

/** One caller's share of a statement. */
interface Call<Item, Result> {
  items: readonly Item[]
  resolve(results: Result[]): void
  reject(reason: unknown): void
}

/**
 * Whether callers of one process may share statements at all. Not on drivers that speak HTTP: in a Worker a request
 * must not wait for what another one has sent.
 */
export function canShare({ capabilities }: Db): boolean {
  return capabilities.interactiveTx
}

/** How callers share statements. */
export interface ShareOptions {
  /** So many items share a statement at most; a single call may bring more. */
  maxItems: number
  /**
   * Whether a statement surely did nothing and one call's items may be to blame: then each call is run by itself, so
   * that nobody fails for another. Default never: a statement that fails, fails for all who shared it.
   */
  isOnesFault?(error: unknown): boolean
  /** Called when no call is left. */
  onIdle?(): void
}

/**
 * A statement that takes longer no longer keeps the next one waiting, so that one that hangs on a lock or on a silent
 * connection holds up those alone who share it.
 */
const patienceMs = 100
/** So many statements are under way at once at most, however long they take. */
const maxUnderWay = 4

/**
 * After those who have just been answered have had their turn: what they call next goes along with what waits. Without
 * it, of sixteen publishers in a loop one and fifteen take turns, and it takes twice the commits.
 */
const soon: (run: () => void) => void = globalThis.setImmediate ?? ((run) => setTimeout(run, 0))

/**
 * Lets calls that come while a statement is under way share the next one: nobody waits for others to come, and
 * of many callers at once each costs a part of a round trip and of a commit. A call is never split, and gets what
 * belongs to its own items.
 *
 * @param run one statement: a result for each item, in their order
 */
export function shareStatement<Item, Result>(
  run: (items: readonly Item[]) => Promise<readonly Result[]>,
  { maxItems, isOnesFault = () => false, onIdle = () => {} }: ShareOptions,
): (items: readonly Item[]) => Promise<Result[]> {
  const waiting: Call<Item, Result>[] = []
  let underWay = 0
  let young = false

  function next(): void {
    if (waiting.length === 0 && underWay === 0) onIdle()
    if (waiting.length === 0 || young || underWay >= maxUnderWay) return
    let mine = true
    const age = (): void => {
      if (mine) young = false
      mine = false
    }
    const patience = setTimeout(() => {
      age()
      next()
    }, patienceMs)
    young = true
    underWay++
    void settle(run, takeShare(waiting, maxItems), isOnesFault).then(() => {
      clearTimeout(patience)
      soon(() => {
        age()
        underWay--
        next()
      })
    })
  }
  return (items) =>
    new Promise((resolve, reject) => {
      waiting.push({ items, resolve, reject })
      next()
    })
}

/** The calls that fit into one statement, in the order in which they came; at least one. */
function takeShare<Item, Result>(waiting: Call<Item, Result>[], maxItems: number): Call<Item, Result>[] {
  let fitting = 0
  for (let size = 0; fitting < waiting.length; fitting++) {
    size += waiting[fitting]!.items.length
    if (fitting > 0 && size > maxItems) break
  }
  return waiting.splice(0, fitting)
}

/** Runs calls together, and where one may be to blame for a failure, each again by itself. Never rejects. */
async function settle<Item, Result>(
  run: (items: readonly Item[]) => Promise<readonly Result[]>,
  calls: Call<Item, Result>[],
  isOnesFault: (error: unknown) => boolean,
): Promise<void> {
  try {
    const results = await run(calls.length === 1 ? calls[0]!.items : calls.flatMap(({ items }) => items))
    let next = 0
    for (const { items, resolve } of calls) resolve(results.slice(next, (next += items.length)))
  } catch (error) {
    if (calls.length > 1 && isOnesFault(error)) {
      for (const call of calls) await settle(run, [call], isOnesFault)
    } else for (const { reject } of calls) reject(error)
  }
}
