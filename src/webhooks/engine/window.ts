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
  let entries: WindowEntry[] = []
  /** The first that is not stored; what is before it is left over until the next compaction. */
  let first = 0
  /** The first that is not settled. */
  let head = 0
  let scanned = offset
  let open = 0
  let bytes = 0

  function passSettled(): void {
    while (head < entries.length && entries[head]!.settled) bytes -= entries[head++]!.bytes
  }

  /** Now and then, not on every event. */
  function compact(): void {
    if (first <= 1024 && first < entries.length) return
    entries = entries.slice(first)
    head -= first
    first = 0
  }

  return {
    add(at, size) {
      const entry = { offset: at, bytes: size, settled: false }
      entries.push(entry)
      bytes += size
      open++
      scanned = at
      return entry
    },
    settle(entry) {
      if (entry.settled) return
      entry.settled = true
      open--
      passSettled()
    },
    scannedTo: (at) => void (scanned = Math.max(scanned, at)),
    stored(at) {
      while (first < head && entries[first]!.offset <= at) first++
      compact()
    },
    rewind(at) {
      const left = entries.slice(first)
      entries = left.filter((entry) => entry.offset <= at)
      // whoever still holds one of the others settles nothing with it
      for (const entry of left) if (entry.offset > at) entry.settled = true
      first = 0
      head = 0
      bytes = entries.reduce((sum, entry) => sum + entry.bytes, 0)
      open = entries.reduce((count, { settled }) => count + (settled ? 0 : 1), 0)
      scanned = at
      passSettled()
    },
    lowWater: () => (head < entries.length ? entries[head]!.offset - 1 : scanned),
    settledTo: () => entries.findLast((entry, index) => index > head && entry.settled)?.offset ?? 0,
    get scanned() {
      return scanned
    },
    get size() {
      return entries.length - first
    },
    get open() {
      return open
    },
    get storable() {
      return head - first
    },
    get bytes() {
      return bytes
    },
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
