import type { Outcome } from '../outcome.ts'
import type { SendResult } from '../sender.ts'
import type { Changes } from './changes.ts'
import type { DeliveryRow } from './flush-outcomes.ts'
import type { Item } from './units.ts'

/** An outcome that says something: the attempt was made. */
export type Judgement = Exclude<Outcome, { kind: 'abandoned' }>

/** Notes what became of an attempt. An event that succeeds at once leaves no row and no line. */
export function recordOutcome(
  changes: Changes,
  item: Item,
  attempt: number,
  outcome: Judgement,
  result: SendResult,
): void {
  if (outcome.kind === 'delivered' && attempt === 1 && !item.hasRow) return changes.succeeded()
  const answer = result.kind === 'answer' ? result.body : null
  const status = result.kind === 'answer' ? result.status : null
  const error = outcome.kind === 'delivered' ? null : outcome.why
  const row = { offset: item.event.offset, unit: item.unit, attempts: attempt, status, error, answer }
  if (outcome.kind === 'delivered') {
    changes.succeeded()
    if (item.hasRow) changes.put({ ...row, state: 'gone', delayMs: 0 })
  } else {
    changes.failed()
    changes.put({ ...row, ...stateAfter(outcome) })
  }
  if (outcome.kind === 'disable') changes.disable(outcome.why)
  if (outcome.kind === 'delivered' && attempt === 1) return
  changes.log({
    offset: item.event.offset,
    attempt,
    outcome: outcome.kind === 'disable' ? 'disabled' : outcome.kind,
    durationMs: Math.round(result.durationMs),
    status,
    error,
    answer,
  })
}

/** A delivery whose answer disabled the webhook is kept, due at once when it is enabled again. */
function stateAfter(
  outcome: Exclude<Judgement, { kind: 'delivered' }>,
): Pick<DeliveryRow, 'state' | 'delayMs'> {
  switch (outcome.kind) {
    case 'retry':
      return { state: 'retrying', delayMs: outcome.delayMs }
    case 'dead':
      return { state: 'dead', delayMs: 0 }
    case 'disable':
      return { state: 'retrying', delayMs: 0 }
  }
}
