/** An event that was taken from the stream and is not yet known to be done with. */
export interface WindowEntry {
  offset: number
  bytes: number
  /** Delivered, or recorded in `deliveries`. */
  settled: boolean
}

/** The events between a webhook's stored offset and how far it has read. */
export interface Window {
  add(offset: number, bytes: number): WindowEntry
  settle(entry: WindowEntry): void
  /** Everything up to here was looked at. */
  scannedTo(offset: number): void
  /** The database has the offset: what lies up to it is never sent again. */
  stored(offset: number): void
  /** Forget what was taken after an offset, and read it again later. */
  rewind(offset: number): void
  /** Up to here everything is settled: what may be stored as the offset. */
  lowWater(): number
  /** The highest event that is settled though an earlier one is not; 0: there is none. */
  settledTo(): number
  readonly scanned: number
  /** Events above the stored offset: what would be sent again if this process died now. */
  readonly size: number
  /** Those that are not settled. */
  readonly open: number
  /** Settled ones above the stored offset, which storing the low-water mark takes away. */
  readonly storable: number
  /** Size of those that hold the low-water mark back, or stand behind one that does. */
  readonly bytes: number
}

/** @param offset the stored offset to begin from */
export function createWindow(offset: number): Window {
  return new Entries(offset)
}

/** A class, as all that each lane has of its own: a thousand lanes of closures do not fit into a processor's cache. */
class Entries implements Window {
  scanned: number
  open = 0
  bytes = 0
  #entries: WindowEntry[] = []
  /** The first that is not stored; what is before it is left over until the next compaction. */
  #first = 0
  /** The first that is not settled. */
  #head = 0

  constructor(offset: number) {
    this.scanned = offset
  }

  add(offset: number, bytes: number): WindowEntry {
    const entry = { offset, bytes, settled: false }
    this.#entries.push(entry)
    this.bytes += bytes
    this.open++
    this.scanned = offset
    return entry
  }

  settle(entry: WindowEntry): void {
    if (entry.settled) return
    entry.settled = true
    this.open--
    this.#passSettled()
  }

  scannedTo(offset: number): void {
    this.scanned = Math.max(this.scanned, offset)
  }

  stored(offset: number): void {
    while (this.#first < this.#head && this.#entries[this.#first]!.offset <= offset) this.#first++
    this.#compact()
  }

  rewind(offset: number): void {
    const left = this.#entries.slice(this.#first)
    this.#entries = left.filter((entry) => entry.offset <= offset)
    // whoever still holds one of the others settles nothing with it
    for (const entry of left) if (entry.offset > offset) entry.settled = true
    this.#first = 0
    this.#head = 0
    this.bytes = this.#entries.reduce((sum, entry) => sum + entry.bytes, 0)
    this.open = this.#entries.reduce((count, { settled }) => count + (settled ? 0 : 1), 0)
    this.scanned = offset
    this.#passSettled()
  }

  lowWater(): number {
    return this.#head < this.#entries.length ? this.#entries[this.#head]!.offset - 1 : this.scanned
  }

  settledTo(): number {
    return this.#entries.findLast((entry, index) => index > this.#head && entry.settled)?.offset ?? 0
  }

  get size(): number {
    return this.#entries.length - this.#first
  }

  get storable(): number {
    return this.#head - this.#first
  }

  #passSettled(): void {
    const entries = this.#entries
    while (this.#head < entries.length && entries[this.#head]!.settled)
      this.bytes -= entries[this.#head++]!.bytes
  }

  /** Now and then, not on every event. */
  #compact(): void {
    if (this.#first <= 1024 && this.#first < this.#entries.length) return
    this.#entries = this.#entries.slice(this.#first)
    this.#head -= this.#first
    this.#first = 0
  }
}

/**
 * Whether storing the low-water mark makes room that is worth a flush: once half of what was taken is through, so
 * that the rest is sent meanwhile. Sooner, flush would follow on flush, each for the few events that came through
 * during the one before. Where all the rest has to wait, for one key say, an eighth will do.
 */
export function isWorthStoring(
  { storable, open }: Pick<Window, 'storable' | 'open'>,
  maxWindow: number,
  hasReady: boolean,
): boolean {
  return storable > 0 && (open <= maxWindow / 2 || (!hasReady && storable >= maxWindow / 8))
}
