/** What an event or a message carries in every part: about 300 bytes of JSON. */
export const payload = {
  order: 'o-1234567',
  total: 4200,
  lines: ['a', 'b', 'c'],
  note: 'x'.repeat(240),
}
export const payloadText = JSON.stringify(payload)

/** Runs `work` in so many loops at once until the time is up. Returns runs per second. */
export async function rateOf(
  loops: number,
  seconds: number,
  work: (loop: number) => Promise<unknown>,
): Promise<number> {
  const start = performance.now()
  const end = start + seconds * 1000
  let runs = 0
  await together(loops, async (loop) => {
    while (performance.now() < end) {
      await work(loop)
      runs++
    }
  })
  return runs / ((performance.now() - start) / 1000)
}

/** Runs `work` once in each of so many loops at once. */
export async function together(loops: number, work: (loop: number) => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: loops }, (_, loop) => work(loop)))
}

/** How long `work` takes, in seconds. */
export async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return (performance.now() - start) / 1000
}
