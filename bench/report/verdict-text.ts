import { compact } from '../harness/format.ts'
import type { Goal } from '../harness/goals.ts'
import type { Verdict } from '../harness/judge.ts'
import type { Spread } from '../harness/stats.ts'

/** One line for the terminal. */
export function verdictLine(verdict: Verdict): string {
  const { goal, met } = verdict
  const against = goal.against === null ? '' : ` against ${goal.against.join(', ')}`
  return `${met ? 'met   ' : 'MISSED'} ${goal.row.padEnd(4)}${goal.what}${against}: ${valueText(verdict)} (${boundText(goal)})`
}

/** The value with its ends: `0.93 (0.88 to 0.97)`. */
export function valueText({ value }: Pick<Verdict, 'value'>): string {
  return value.low === value.high ? compact(value.median) : spreadText(value)
}

export function spreadText({ median, low, high }: Spread): string {
  return `${compact(median)} (${compact(low)} to ${compact(high)})`
}

/** What is to be reached: `≥ 0.9`. */
export function boundText({ bound }: Pick<Goal, 'bound'>): string {
  return 'atLeast' in bound ? `≥ ${bound.atLeast}` : `≤ ${bound.atMost}`
}
