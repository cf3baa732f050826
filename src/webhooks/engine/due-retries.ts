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

export function createDueRetries(): DueRetries {
  return new Retries()
}

class Retries implements DueRetries {
  readonly #inHand = new Set<number>()
  #dueAt = Infinity
  #loadedAt = 0
  #touched: Set<number> | null = null

  due(at: number | null): void {
    this.#dueAt = at ?? Infinity
  }

  took(offset: number): void {
    this.#inHand.add(offset)
  }

  gaveUp(offset: number): void {
    this.#inHand.delete(offset)
    this.#touched?.add(offset)
  }

  get idle(): boolean {
    return this.#touched !== null || this.#dueAt === Infinity
  }

  loadInMs(now: number): number {
    if (this.idle) return Infinity
    return Math.max(0, this.#dueAt - now, this.#inHand.size > 0 ? this.#loadedAt + pauseMs - now : 0)
  }

  beginLoad(now: number): void {
    this.#loadedAt = now
    this.#dueAt = Infinity
    this.#touched = new Set(this.#inHand)
  }

  endLoad(): void {
    this.#touched = null
  }

  isFresh(offset: number): boolean {
    return !this.#inHand.has(offset) && !this.#touched?.has(offset)
  }
}
