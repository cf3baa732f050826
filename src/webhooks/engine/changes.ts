import type { AttemptRow, DeliveryRow } from './flush-outcomes.ts'

/** What a webhook wants written, collected until the next flush takes it. */
export interface Changes {
  /** How a delivery shall be; a later word on the same one replaces an earlier. */
  put(row: DeliveryRow): void
  /** The head of a unit is gone: its successor moves up. */
  promote(unit: string): void
  /** The unit has a head again after all. */
  keepHead(unit: string): void
  succeeded(): void
  failed(): void
  log(line: AttemptRow): void
  disable(reason: string): void
  /** Whether a unit has rows that are not yet in the database. */
  hasRowsOf(unit: string): boolean
  /** Whether a delivery has a change that is not yet in the database. */
  has(offset: number): boolean
  /** Whether a unit's next head is not yet written. */
  promotes(unit: string): boolean
  /** Rows that wait to be written. */
  readonly size: number
  /** There is something that is worth a statement of its own. */
  readonly dirty: boolean
  take(): TakenChanges
  /** The flush failed: what was taken goes back, below anything newer. */
  giveBack(taken: TakenChanges): void
  /** The flush stands. */
  written(taken: TakenChanges): void
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

  const hasRow = (changes: TakenChanges | null, unit: string): boolean =>
    changes !== null && [...changes.rows.values()].some((row) => row.unit === unit)

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
    hasRowsOf: (unit) => hasRow(pending, unit) || hasRow(flying, unit),
    has: (offset) => pending.rows.has(offset) || flying?.rows.has(offset) === true,
    promotes: (unit) => pending.promote.has(unit) || flying?.promote.has(unit) === true,
    get size() {
      return pending.rows.size
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
      for (const [offset, row] of pending.rows) taken.rows.set(offset, row)
      pending = {
        rows: taken.rows,
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
