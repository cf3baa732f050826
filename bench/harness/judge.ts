import type { Goal } from './goals.ts'
import type { CaseResult, PartResult } from './results.ts'
import { spread, type Spread } from './stats.ts'

/** What became of a goal. */
export interface Verdict {
  goal: Goal
  /** Millrace's figure, and its unit. */
  measured: Spread
  unit: string
  /** The figure of the best one that it is held against, round by round. */
  against: Spread | null
  /** What is held against the bound: the ratio, or the figure itself. */
  value: Spread
  /** Where it is held against peers and the bare statement was measured too: the ratio that the bare one reaches. */
  limit: Spread | null
  met: boolean
}

/** Judges a goal by what is kept; undefined where it was not measured. */
export function judge(goal: Goal, results: readonly PartResult[]): Verdict | undefined {
  const found = results.flatMap((result) => result.cases).find((one) => one.id === goal.case)
  if (found === undefined) return undefined
  const own = figures(found, found.contestants[0]?.name ?? '', goal.metric)
  const unit = found.units[goal.metric] ?? ''
  if (own.length === 0) return undefined
  const rounds = goal.against === null ? null : best(found, goal)
  if (goal.against !== null && rounds === null) return undefined
  const values = own.map((value, round) => (rounds === null ? value : value / rounds[round]!))
  const value = spread(values)
  return {
    goal,
    measured: spread(own),
    unit,
    against: rounds === null ? null : spread(rounds),
    value,
    limit: limitOf(found, goal, rounds),
    met: 'atLeast' in goal.bound ? value.median >= goal.bound.atLeast : value.median <= goal.bound.atMost,
  }
}

function limitOf(found: CaseResult, goal: Goal, rounds: number[] | null): Spread | null {
  const bare = figures(found, 'bare', goal.metric)
  if (rounds === null || goal.against?.includes('bare') || bare.length === 0) return null
  return spread(bare.map((value, round) => value / rounds[round]!))
}

/** The best figure of each round: the highest where the goal is to be above, else the lowest. */
function best(found: CaseResult, goal: Goal): number[] | null {
  const all = (goal.against ?? [])
    .map((name) => figures(found, name, goal.metric))
    .filter(({ length }) => length > 0)
  if (all.length === 0) return null
  const choose = 'atLeast' in goal.bound ? Math.max : Math.min
  return all[0]!.map((_, round) => choose(...all.map((values) => values[round]!)))
}

function figures(found: CaseResult, name: string, metric: string): number[] {
  const contestant = found.contestants.find((one) => one.name === name)
  return (contestant?.samples ?? []).map((sample) => sample[metric]!).filter((value) => value !== undefined)
}
