import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { goals } from '../harness/goals.ts'
import { judge } from '../harness/judge.ts'
import type { PartResult } from '../harness/results.ts'
import { parts } from '../parts/parts.ts'
import { chartGrowth } from './chart-growth.ts'
import { chartRatios } from './chart-ratios.ts'
import { circumstances, figuresTable, goalsTable } from './tables.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const readme = new URL('../README.md', import.meta.url)
const [begin, end] = ['<!-- results: begin, written by bench/run.ts -->', '<!-- results: end -->']

/** Draws the charts, and writes the tables into bench/README.md between their marks. */
export async function writeReport(kept: readonly PartResult[]): Promise<void> {
  const order = parts.map(({ name }) => name)
  const results = kept.toSorted((a, b) => order.indexOf(a.part) - order.indexOf(b.part))
  const verdicts = goals.map((goal) => judge(goal, results)).filter((verdict) => verdict !== undefined)
  const cases = results.flatMap((result) => result.cases)
  await draw('ratios', chartRatios(verdicts))
  if (cases.some(({ id }) => id.startsWith('growth'))) await draw('growth', chartGrowth(cases))
  const text = await readFile(readme, 'utf8')
  const [before, rest] = split(text, begin)
  const [, after] = split(rest, end)
  const tables = [circumstances(results), goalsTable(verdicts), '### All figures', figuresTable(results)]
  await writeFile(readme, `${before}${begin}\n\n${tables.join('\n\n')}\n\n${end}${after}`)
  execFileSync('npx', ['oxfmt', fileURLToPath(readme)], { cwd: root, shell: process.platform === 'win32' })
}

function draw(name: string, svg: string): Promise<void> {
  return writeFile(new URL(`../results/${name}.svg`, import.meta.url), svg)
}

function split(text: string, at: string): [string, string] {
  const index = text.indexOf(at)
  if (index < 0) throw new Error(`bench/README.md has no line ${at}`)
  return [text.slice(0, index), text.slice(index + at.length)]
}
