/** One caller's share of a statement. */
interface Call<Item, Result> {
  items: readonly Item[]
  resolve(results: Result[]): void
  reject(reason: unknown): void
}

/**
 * Lets calls that come while a statement is under way share the next one: nobody waits for others to come, and
 * of many callers at once each costs a part of a round trip and of a commit. A call is never split, and gets what
 * belongs to its own items; a statement that fails, fails for all who shared it.
 *
 * @param run one statement: a result for each item, in their order
 * @param maxItems so many items share a statement at most; a single call may bring more
 */
export function shareStatement<Item, Result>(
  run: (items: Item[]) => Promise<Result[]>,
  maxItems: number,
): (items: readonly Item[]) => Promise<Result[]> {
  const waiting: Call<Item, Result>[] = []
  let running = false

  async function runAll(): Promise<void> {
    running = true
    while (waiting.length > 0) await runShared(run, takeShare(waiting, maxItems))
    // in the same breath as the last look, or a call that comes in between would wait for nobody
    running = false
  }
  return (items) =>
    new Promise((resolve, reject) => {
      waiting.push({ items, resolve, reject })
      if (!running) void runAll()
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

async function runShared<Item, Result>(
  run: (items: Item[]) => Promise<Result[]>,
  calls: Call<Item, Result>[],
): Promise<void> {
  try {
    const results = await run(calls.flatMap(({ items }) => items))
    let next = 0
    for (const { items, resolve } of calls) resolve(results.slice(next, (next += items.length)))
  } catch (error) {
    for (const { reject } of calls) reject(error)
  }
}
