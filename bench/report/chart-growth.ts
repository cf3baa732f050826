import { compact } from '../harness/format.ts'
import type { CaseResult } from '../harness/results.ts'
import { spread, type Spread } from '../harness/stats.ts'
import { element, label, logScale, picture } from './svg.ts'

const panelWidth = 430
const height = 300
const [top, bottom] = [56, height - 40]
const [left, right] = [64, panelWidth - 24]

interface Line {
  metric: string
  points: { at: number; rate: Spread }[]
}

/** How rates change with what is stored, and with webhooks. Both axes in powers of ten. */
export function chartGrowth(cases: readonly CaseResult[]): string {
  const panels = ['growth-stored', 'growth-webhooks']
    .map((id) => cases.find((one) => one.id === id))
    .filter((one) => one !== undefined)
  const titles = { 'growth-stored': 'by events stored', 'growth-webhooks': 'by webhooks' }
  const drawn = panels.map((panel, n) => {
    const content = drawPanel(titles[panel.id as keyof typeof titles], linesOf(panel))
    return `<g transform="translate(${n * panelWidth} 0)">\n${content.join('\n')}\n</g>`
  })
  const title = 'Publish and delivery rates a second, median of the rounds'
  return picture(panelWidth * panels.length, height, title, [label(12, 20, title), ...drawn])
}

function linesOf({ units, contestants }: CaseResult): Line[] {
  return Object.keys(units).map((metric) => ({
    metric,
    points: contestants.map(({ name, samples }) => ({
      at: Number(name),
      rate: spread(samples.map((sample) => sample[metric]!)),
    })),
  }))
}

function drawPanel(title: string, lines: Line[]): string[] {
  const ats = lines.flatMap(({ points }) => points.map(({ at }) => at))
  const rates = lines.flatMap(({ points }) => points.flatMap(({ rate }) => [rate.low, rate.high]))
  const x = logScale(Math.min(...ats), Math.max(...ats), left + 10, right - 10)
  const floor = 10 ** Math.floor(Math.log10(Math.min(...rates)))
  const ceiling = 10 ** Math.ceil(Math.log10(Math.max(...rates)))
  const y = logScale(floor, ceiling, bottom, top)
  return [
    label(left, top - 14, title),
    ...powers(floor, ceiling).flatMap((rate) => [
      element('line', { class: 'axis', x1: left, x2: right, y1: y(rate), y2: y(rate) }),
      label(left - 6, y(rate) + 4, rate.toLocaleString('en'), { anchor: 'end', small: true }),
    ]),
    ...[...new Set(ats)].map((at) =>
      label(x(at), bottom + 18, at.toLocaleString('en'), { anchor: 'middle', small: true }),
    ),
    ...lines.flatMap((line) => drawLine(line, x, y, isLower(lines, line))),
  ]
}

/** Whether another line lies above this one at a place: then its figures stand below it. */
function isLower(lines: readonly Line[], line: Line): (at: number) => boolean {
  const rateOf = ({ points }: Line, at: number) => points.find((point) => point.at === at)?.rate.median ?? 0
  return (at) => lines.some((other) => rateOf(other, at) > rateOf(line, at))
}

function drawLine(
  { metric, points }: Line,
  x: (at: number) => number,
  y: (rate: number) => number,
  below: (at: number) => boolean,
): string[] {
  const look = metric === 'publish' ? 'a' : 'b'
  const path = points.map(({ at, rate }) => `${x(at).toFixed(1)},${y(rate.median).toFixed(1)}`).join(' ')
  const [first, last] = [points[0]!, points.at(-1)!]
  return [
    `<polyline class="${look} line" style="fill:none" points="${path}"/>`,
    ...points.flatMap(({ at, rate }) => [
      element('line', { class: look, x1: x(at), x2: x(at), y1: y(rate.low), y2: y(rate.high) }),
      element('circle', { class: look, cx: x(at), cy: y(rate.median), r: 3 }),
      label(
        x(at) + 6,
        y(below(at) ? rate.low : rate.high) + (below(at) ? 14 : -6),
        `${at === first.at ? `${metric} ` : ''}${compact(rate.median)}`,
        { small: true, anchor: at === last.at ? 'end' : 'start' },
      ),
    ]),
  ]
}

/** 10, 100, 1000 … between two. */
function powers(from: number, to: number): number[] {
  const all = []
  for (let power = from; power <= to; power *= 10) all.push(power)
  return all
}
