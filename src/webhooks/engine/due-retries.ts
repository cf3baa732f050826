/**
 * Which recorded deliveries are in hand, and when the database is to be asked for those that have
 * fallen due. What is in hand is due in the database as well, until its outcome is written.
 */
export interface DueRetries {
  /** The database says when the earliest retry falls due; null: there is none. */
  due(at: number | null): void
  took(offset: number): void
  /** It was sent, or dropped to be loaded again. */
  gaveUp(offset: number): void
  /** As long as nothing happens there is nothing to load. */
  readonly idle: boolean
  /** Milliseconds until a load makes sense, 0: now; Infinity: not before something happens. */
  loadInMs(now: number): number
  /** From here on, only what `due` says counts: the load shows what it said before. */
  beginLoad(now: number): void
  endLoad(): void
  /** Nothing has happened to the delivery since the load began, so what it shows is true. */
  isFresh(offset: number): boolean
}

/** While due retries are in hand, asking for more than this often tells nothing. */
const pauseMs = 1_000

export function createDueRetries(firstAt: number | null): DueRetries {
  const inHand = new Set<number>()
  let dueAt = firstAt ?? Infinity
  let loadedAt = 0
  let touched: Set<number> | null = null

  return {
    due: (at) => void (dueAt = at ?? Infinity),
    took: (offset) => void inHand.add(offset),
    gaveUp(offset) {
      inHand.delete(offset)
      touched?.add(offset)
    },
    get idle() {
      return touched !== null || dueAt === Infinity
    },
    loadInMs(now) {
      if (this.idle) return Infinity
      return Math.max(0, dueAt - now, inHand.size > 0 ? loadedAt + pauseMs - now : 0)
    },
    beginLoad(now) {
      loadedAt = now
      dueAt = Infinity
      touched = new Set(inHand)
    },
    endLoad: () => void (touched = null),
    isFresh: (offset) => !inHand.has(offset) && !touched?.has(offset),
  }
}
