import { compact } from '../harness/format.ts'
import type { Verdict } from '../harness/judge.ts'
import type { CaseResult, PartResult } from '../harness/results.ts'
import { spread } from '../harness/stats.ts'
import { boundText, spreadText, valueText } from './verdict-text.ts'

/** Goals, and what became of them. */
export function goalsTable(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map((verdict) => {
    const { goal, measured, unit, against, limit, met } = verdict
    const other = against === null ? '' : `${goal.against!.join(', ')}: ${compact(against.median)}`
    const value = against === null ? '' : valueText(verdict)
    const reach = limit === null ? '' : compact(limit.median)
    const result = met ? 'met' : '**missed**'
    const own = measured.low === measured.high ? compact(measured.median) : spreadText(measured)
    return [goal.row, goal.what, `${own} ${unit}`, other, value, reach, boundText(goal), result]
  })
  return table(['', 'what', 'Millrace', 'against', 'ratio', 'limit', 'goal', ''], rows)
}

/** Every figure of every case. */
export function figuresTable(results: readonly PartResult[]): string {
  const rows = results.flatMap(({ cases }) => cases.flatMap((one) => figureRows(one)))
  return table(['case', 'who', 'settings', 'median (lowest to highest)'], rows)
}

function figureRows({ title, units, contestants }: CaseResult): string[][] {
  return contestants.map(({ name, settings = '', samples }, n) => {
    const figures = Object.entries(units)
      .filter(([metric]) => samples[0]?.[metric] !== undefined)
      .map(([metric, unit]) => {
        const values = spread(samples.map((sample) => sample[metric]!))
        const text = values.low === values.high ? compact(values.median) : spreadText(values)
        return `${Object.keys(units).length > 1 ? `${metric} ` : ''}${text} ${unit}`
      })
    return [n === 0 ? title : '', name, settings, figures.join('; ')]
  })
}

/** On what, when, and with which versions. */
export function circumstances(results: readonly PartResult[]): string {
  const [first] = results
  if (first === undefined) return ''
  const { cpu, cores, memoryGb, system, node, postgres } = first.machine
  const loads = results.map(({ machine }) => machine.loadBefore)
  const versions = Object.entries(first.versions).map(([name, version]) => `${name} ${version}`)
  const days = [...new Set(results.map(({ startedAt }) => startedAt.slice(0, 10)))]
  const notes = [...new Set(results.flatMap(({ notes }) => notes))]
  return [
    `${days.join(', ')}, on ${cpu}, ${cores} cores, ${memoryGb} GB, ${system}; Postgres ${postgres} (fsync on), Node ${node};`,
    `${versions.join(', ')}. ${Math.min(...results.map(({ rounds }) => rounds))} rounds or more. When the parts began, the machine's`,
    `load (of one minute) was ${Math.min(...loads)} to ${Math.max(...loads)}: what else it was doing, beside the parts before.`,
    ...notes,
  ].join('\n')
}

function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map((row) => line(row))].join('\n')
}
