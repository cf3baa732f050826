/** Another job queue, set up as its documentation recommends for speed. */
export interface QueuePeer {
  name: string
  settings: { send: string; batched: string; single: string }
  /** Sends one message. */
  send(data: object): Promise<void>
  /** Sends several in one call. */
  sendMany(data: readonly object[]): Promise<void>
  /** Works with ten handlers and all batching that there is, until so many are handled. */
  workBatched(count: number): Promise<Worked>
  /** As `workBatched`, but claims one at a time and finishes one at a time. */
  workSingle(count: number): Promise<Worked>
  close(): Promise<void>
}

/** Messages per second, from the first that was handled to the last: what a start costs is not in it. */
export interface Worked {
  rate: number
}

/** Counts handled messages. */
export interface Tally {
  /** So many more are handled. */
  add(count?: number): void
  /** Resolves when all are handled. */
  all: Promise<Worked>
}

/** Counts up to so many. */
export function createTally(count: number): Tally {
  let handled = 0
  let first = 0
  let done: (worked: Worked) => void
  const all = new Promise<Worked>((resolve) => {
    done = resolve
  })
  return {
    all,
    add(more = 1) {
      if (handled === 0) first = performance.now()
      handled += more
      if (handled >= count) done({ rate: count / ((performance.now() - first) / 1000) })
    },
  }
}
