import type { Arrival } from '../support/script.ts'
import { maxAttempts, type Chaos, type Ordering } from './chaos.ts'

/** What breaks W1 or W3 in the history of a run, in words; nothing: all is well. */
export function faultsOf(chaos: Chaos, dead: ReadonlySet<string>): string[] {
  return chaos.webhooks.flatMap(({ id, ordering }) => {
    const arrivals = chaos.endpoint.history.filter(({ webhookId }) => webhookId === id)
    return [
      ...missing(chaos, arrivals, (offset) => dead.has(`${id} ${offset}`)),
      ...disordered(chaos, arrivals, ordering),
    ].map((fault) => `${ordering}: ${fault}`)
  })
}

/** W1: delivered at least once, or dead; what was trimmed may be neither. */
function missing(chaos: Chaos, arrivals: readonly Arrival[], isDead: (offset: number) => boolean): string[] {
  const delivered = new Set(arrivals.filter(({ verdict }) => verdict === 'ok').map(({ offset }) => offset))
  return chaos.published
    .filter(({ offset }) => offset > chaos.trimmed && !delivered.has(offset) && !isDead(offset))
    .map(({ offset }) => `${offset} was neither delivered nor recorded as dead`)
}

/** W3: when an attempt begins, everything before it in its unit has succeeded or died. */
function disordered(chaos: Chaos, arrivals: readonly Arrival[], ordering: Ordering): string[] {
  const unitOf = (key: string | null): string | null =>
    ordering === 'stream' ? '' : ordering === 'key' ? key : null
  const throughAt = new Map<number, number>()
  const failures = new Map<number, number>()
  for (const one of arrivals.toSorted((a, b) => a.ended - b.ended)) {
    if (throughAt.has(one.offset) || one.ended < 0) continue
    if (one.verdict === 'ok') throughAt.set(one.offset, one.ended)
    if (one.verdict !== 'failed') continue
    const count = (failures.get(one.offset) ?? 0) + 1
    failures.set(one.offset, count)
    if (count >= maxAttempts) throughAt.set(one.offset, one.ended)
  }
  const faults: string[] = []
  for (const { offset, key, begun } of arrivals) {
    const unit = unitOf(key)
    if (unit === null) continue
    const early = chaos.published.filter(
      (before) =>
        before.offset < offset &&
        before.offset > chaos.trimmed &&
        unitOf(before.key) === unit &&
        (throughAt.get(before.offset) ?? Infinity) > begun,
    )
    for (const before of early) faults.push(`${offset} was sent before ${before.offset} was through`)
  }
  return faults
}
