import type { AttemptRow, DeliveryRow } from './flush-outcomes.ts'

/** What a webhook wants written, collected until the next flush takes it. */
export interface Changes {
  /** How a delivery shall be; a later word on the same one replaces an earlier. */
  put(row: DeliveryRow): void
  /** The unit may be without a head: whatever is first in it becomes one. */
  promote(unit: string): void
  /** The unit has a head again after all. */
  keepHead(unit: string): void
  succeeded(): void
  failed(): void
  log(line: AttemptRow): void
  disable(reason: string): void
  /** Whether a unit has rows that are not yet in the database. */
  hasRowsOf(unit: string): boolean
  /** Whether a unit has rows, not yet in the database, that say more than that they wait. */
  hasOutcomesOf(unit: string): boolean
  /** Whether a delivery has a change that is not yet in the database. */
  has(offset: number): boolean
  /** Rows that wait to be written. */
  readonly size: number
  /** A flush is under way. */
  readonly flying: boolean
  /** There is something that is worth a statement of its own. */
  readonly dirty: boolean
  take(): TakenChanges
  /** The flush failed: what was taken goes back, below anything newer. */
  giveBack(taken: TakenChanges): void
  /** The flush stands. */
  written(): void
}

/** What one flush carries. */
export interface TakenChanges {
  rows: Map<number, DeliveryRow>
  promote: Set<string>
  log: AttemptRow[]
  succeeded: boolean
  failed: boolean
  disable: string | null
}

function empty(): TakenChanges {
  return { rows: new Map(), promote: new Set(), log: [], succeeded: false, failed: false, disable: null }
}

export function createChanges(): Changes {
  let pending = empty()
  let flying: TakenChanges | null = null

  function some(unit: string, test: (row: DeliveryRow) => boolean): boolean {
    for (const row of pending.rows.values()) if (row.unit === unit && test(row)) return true
    for (const row of flying?.rows.values() ?? []) if (row.unit === unit && test(row)) return true
    return false
  }

  return {
    put: (row) => void pending.rows.set(row.offset, row),
    promote: (unit) => void pending.promote.add(unit),
    keepHead: (unit) => void pending.promote.delete(unit),
    succeeded() {
      pending.succeeded = true
      pending.failed = false
    },
    failed: () => void (pending.failed = true),
    log: (line) => void pending.log.push(line),
    disable: (reason) => void (pending.disable ??= reason),
    hasRowsOf: (unit) => some(unit, () => true),
    hasOutcomesOf: (unit) => some(unit, (row) => row.state !== 'blocked'),
    has: (offset) => pending.rows.has(offset) || flying?.rows.has(offset) === true,
    get size() {
      return pending.rows.size
    },
    get flying() {
      return flying !== null
    },
    get dirty() {
      return (
        pending.rows.size > 0 ||
        pending.promote.size > 0 ||
        pending.log.length > 0 ||
        pending.disable !== null
      )
    },
    take() {
      flying = pending
      pending = empty()
      return flying
    },
    giveBack(taken) {
      flying = null
      pending = {
        rows: new Map([...taken.rows, ...pending.rows]),
        promote: new Set([...taken.promote, ...pending.promote]),
        log: [...taken.log, ...pending.log],
        succeeded: taken.succeeded || pending.succeeded,
        failed: pending.failed || (taken.failed && !pending.succeeded),
        disable: taken.disable ?? pending.disable,
      }
    },
    written: () => void (flying = null),
  }
}
