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
  return new Collected()
}

/** What most flushes take: nothing but that there was a success. Nobody writes to it. */
const nothing: TakenChanges = empty()

class Collected implements Changes {
  #pending = empty()
  #flying: TakenChanges | null = null

  put(row: DeliveryRow): void {
    this.#pending.rows.set(row.offset, row)
  }

  promote(unit: string): void {
    this.#pending.promote.add(unit)
  }

  keepHead(unit: string): void {
    this.#pending.promote.delete(unit)
  }

  succeeded(): void {
    this.#pending.succeeded = true
    this.#pending.failed = false
  }

  failed(): void {
    this.#pending.failed = true
  }

  log(line: AttemptRow): void {
    this.#pending.log.push(line)
  }

  disable(reason: string): void {
    this.#pending.disable ??= reason
  }

  hasRowsOf(unit: string): boolean {
    return this.#some(unit, () => true)
  }

  hasOutcomesOf(unit: string): boolean {
    return this.#some(unit, (row) => row.state !== 'blocked')
  }

  has(offset: number): boolean {
    return this.#pending.rows.has(offset) || this.#flying?.rows.has(offset) === true
  }

  get size(): number {
    return this.#pending.rows.size
  }

  get flying(): boolean {
    return this.#flying !== null
  }

  get dirty(): boolean {
    const { rows, promote, log, disable } = this.#pending
    return rows.size > 0 || promote.size > 0 || log.length > 0 || disable !== null
  }

  take(): TakenChanges {
    if (this.dirty) {
      this.#flying = this.#pending
      this.#pending = empty()
      return this.#flying
    }
    const { succeeded, failed } = this.#pending
    this.#pending.succeeded = false
    this.#pending.failed = false
    this.#flying = { ...nothing, succeeded, failed }
    return this.#flying
  }

  giveBack(taken: TakenChanges): void {
    const pending = this.#pending
    this.#flying = null
    this.#pending = {
      rows: new Map([...taken.rows, ...pending.rows]),
      promote: new Set([...taken.promote, ...pending.promote]),
      log: [...taken.log, ...pending.log],
      succeeded: taken.succeeded || pending.succeeded,
      failed: pending.failed || (taken.failed && !pending.succeeded),
      disable: taken.disable ?? pending.disable,
    }
  }

  written(): void {
    this.#flying = null
  }

  #some(unit: string, test: (row: DeliveryRow) => boolean): boolean {
    for (const row of this.#pending.rows.values()) if (row.unit === unit && test(row)) return true
    for (const row of this.#flying?.rows.values() ?? []) if (row.unit === unit && test(row)) return true
    return false
  }
}
