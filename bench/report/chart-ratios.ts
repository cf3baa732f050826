import { compact } from '../harness/format.ts'
import type { Verdict } from '../harness/judge.ts'
import { element, label, logScale, picture } from './svg.ts'
import { boundText } from './verdict-text.ts'

const width = 1010
const rowHeight = 26
const left = 480
const right = width - 130
const top = 40
const ticks = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20]

/** Millrace's figure divided by the other's, round by round: the bar ends at the median, the line shows the ends. */
export function chartRatios(verdicts: readonly Verdict[]): string {
  const rows = verdicts.filter(({ against }) => against !== null)
  const height = top + rows.length * rowHeight + 30
  const x = logScale(0.1, 20, left, right)
  const grid = ticks.flatMap((tick) => [
    element('line', { class: 'axis', x1: x(tick), x2: x(tick), y1: top - 8, y2: height - 24 }),
    label(x(tick), height - 8, String(tick), { anchor: 'middle', small: true }),
  ])
  const bars = rows.flatMap((verdict, row) => drawRow(verdict, top + row * rowHeight, x))
  const title = 'Millrace divided by what it is held against (▏: the goal; filled: met)'
  return picture(width, height, title, [label(12, 20, title), ...grid, ...bars])
}

function drawRow(verdict: Verdict, y: number, x: (value: number) => number): string[] {
  const { goal, value, met } = verdict
  const middle = y + 8
  const [start, end] = [x(1), x(value.median)]
  const bound = 'atLeast' in goal.bound ? goal.bound.atLeast : goal.bound.atMost
  const [mark, look] = met ? ['a', 'a'] : ['b', 'missed']
  return [
    label(12, y + 12, `${goal.row} ${shortened(goal.what)}`),
    label(left - 8, y + 12, goal.against?.join(', ') ?? '', { anchor: 'end', small: true }),
    element('rect', {
      class: look,
      x: Math.min(start, end),
      y: y + 2,
      width: Math.abs(end - start),
      height: 12,
    }),
    element('line', { class: mark, x1: x(value.low), x2: x(value.high), y1: middle, y2: middle }),
    element('line', { class: 'bound', x1: x(bound), x2: x(bound), y1: y, y2: y + 16 }),
    label(right + 6, y + 12, `${compact(value.median)} ${met ? '✓' : '✗'}`),
    label(width - 6, y + 12, boundText(goal), { anchor: 'end', small: true }),
  ]
}

function shortened(what: string): string {
  const text = what.replaceAll('`', '')
  return text.length > 40 ? `${text.slice(0, 39)}…` : text
}
