import { expect } from 'vitest'
import type { EventPage } from '../../../src/streams/read-events.ts'

/** What a stream must look like to its readers, whatever the database does to bring it about. */
export interface Model {
  /** These were committed; in which order they became visible does not matter. */
  committed(offsets: readonly number[]): void
  /** Nothing up to here need be there any more. */
  trimming(through: number): void
  /** Up to where it was trimmed. */
  trimmed(): number
  /** Some committed offset: 0 the lowest, 1 the highest. */
  pick(share: number): number
  /** What must be there once everything is decided. */
  left(): number[]
  reader(): ModelReader
}

/** One who follows the stream, and saves offsets. */
export interface ModelReader {
  /** Reads one page on from the last; returns whether it held anything. */
  read(page: (after: number) => Promise<EventPage>): Promise<boolean>
  /** Saves or seeks, and checks what stands after it (S3). */
  move(how: 'save' | 'seek', offset: number, go: () => Promise<number>): Promise<void>
  saved(): number
  /** Checks, at the end, that it saw everything once and in order (S1). */
  check(): void
}

export function createModel(): Model {
  const offsets = new Set<number>()
  let trimmed = 0
  const sorted = (): number[] => [...offsets].toSorted((a, b) => a - b)
  const left = (): number[] => sorted().filter((offset) => offset > trimmed)
  return {
    committed(more) {
      for (const offset of more) offsets.add(offset)
    },
    trimming: (through) => void (trimmed = Math.max(trimmed, through)),
    trimmed: () => trimmed,
    pick(share) {
      const all = sorted()
      return all[Math.floor(share * (all.length - 1))] ?? 0
    },
    left,
    reader: () => createReader(offsets, left),
  }
}

function createReader(committed: ReadonlySet<number>, left: () => number[]): ModelReader {
  const seen: number[] = []
  let after = 0
  let saved = 0
  return {
    async read(page) {
      const { events, next, horizon, more } = await page(after)
      for (const { offset } of events) {
        expect(offset).toBeGreaterThan(seen.at(-1) ?? after)
        expect(offset).toBeLessThanOrEqual(horizon ?? 0)
        seen.push(offset)
      }
      expect(next).toBeGreaterThanOrEqual(after)
      after = next
      return events.length > 0 || more
    },
    async move(how, offset, go) {
      saved = how === 'save' ? Math.max(saved, offset) : offset
      expect(await go()).toBe(saved)
    },
    saved: () => saved,
    check() {
      expect(seen.filter((offset) => !committed.has(offset))).toEqual([])
      const saw = new Set(seen)
      expect(left().filter((offset) => !saw.has(offset))).toEqual([])
    },
  }
}
