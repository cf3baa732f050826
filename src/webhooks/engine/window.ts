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
  /** Forget what was taken after an offset, and read it again later. */
  rewind(offset: number): void
  /** Up to here everything is settled: what may be stored as the offset. */
  lowWater(): number
  readonly scanned: number
  /** Entries that hold the low-water mark back, or stand behind one that does. */
  readonly size: number
  readonly bytes: number
}

/** @param offset the stored offset to begin from */
export function createWindow(offset: number): Window {
  let entries: WindowEntry[] = []
  let head = 0
  let scanned = offset
  let bytes = 0

  function dropSettled(): void {
    while (head < entries.length && entries[head]!.settled) bytes -= entries[head++]!.bytes
    // compact now and then, not on every event
    if (head > 1024 || head === entries.length) {
      entries = entries.slice(head)
      head = 0
    }
  }

  return {
    add(at, size) {
      const entry = { offset: at, bytes: size, settled: false }
      entries.push(entry)
      bytes += size
      scanned = at
      return entry
    },
    settle(entry) {
      entry.settled = true
      dropSettled()
    },
    scannedTo: (at) => void (scanned = Math.max(scanned, at)),
    rewind(at) {
      entries = entries.slice(head).filter((entry) => entry.offset <= at)
      head = 0
      bytes = entries.reduce((sum, entry) => sum + entry.bytes, 0)
      scanned = at
      dropSettled()
    },
    lowWater: () => (head < entries.length ? entries[head]!.offset - 1 : scanned),
    get scanned() {
      return scanned
    },
    get size() {
      return entries.length - head
    },
    get bytes() {
      return bytes
    },
  }
}
