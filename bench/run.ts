// Runs the bench: `npm run bench`, `npm run bench -- queues --rounds 7`. To profile a part, run it under a Node of
// your own: `node --cpu-prof bench/run.ts delivery --rounds 1`.
import type { Part } from './harness/case.ts'
import { goals } from './harness/goals.ts'
import { judge } from './harness/judge.ts'
import { openLab, type Lab } from './harness/lab.ts'
import { describeMachine, readVersions } from './harness/machine.ts'
import { measureCase } from './harness/measure.ts'
import { readOptions, type RunOptions } from './harness/options.ts'
import { readResults, saveResult, type PartResult } from './harness/results.ts'
import { parts } from './parts/parts.ts'
import { writeReport } from './report/write-report.ts'
import { verdictLine } from './report/verdict-text.ts'

async function runPart(part: Part, lab: Lab, options: RunOptions): Promise<PartResult> {
  const machine = describeMachine(lab.postgresVersion)
  const [startedAt, start] = [new Date().toISOString(), performance.now()]
  console.log(`\n${part.name}`)
  const open = await part.open(lab, options)
  const cases = []
  try {
    for (const one of open.cases) cases.push(await measureCase(one, options.rounds))
  } finally {
    await open.close()
  }
  return {
    part: part.name,
    startedAt,
    seconds: Math.round((performance.now() - start) / 1000),
    rounds: options.rounds,
    full: options.full,
    machine,
    versions: await readVersions(cases.flatMap(({ contestants }) => contestants.map(({ name }) => name))),
    notes: open.notes ?? [],
    cases,
  }
}

/** Growth is kept with its largest size only, which is measured with `--full`. */
function keeps(part: Part): boolean {
  return options.keep && (part.name !== 'growth' || options.full)
}

/**
 * The server runs in a session of its own and would outlive this. A terminal tells this process and the one that
 * started it, which tells it again. What breaks because the server goes must not keep its folders from being removed.
 */
function endWith(opening: Promise<Lab>): void {
  let ending = false
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (ending) return
      ending = true
      console.log('\nEnding the server …')
      for (const event of ['uncaughtException', 'unhandledRejection']) process.on(event, () => {})
      void opening.then((lab) => lab.close()).finally(() => process.exit(1))
    })
  }
}

function tellVerdicts(): void {
  console.log(`\nGoals, by the median of ${options.rounds} rounds:`)
  for (const goal of goals) {
    const verdict = judge(goal, results)
    if (verdict !== undefined) console.log(`  ${verdictLine(verdict)}`)
  }
  if (!options.keep) console.log('Nothing was kept: that takes five rounds.')
  else if (!chosen.every(keeps)) console.log('Growth was not kept: that takes --full.')
}

const options = readOptions(
  process.argv.slice(2),
  parts.map(({ name }) => name),
)
const chosen = parts.filter(({ name }) => options.parts.length === 0 || options.parts.includes(name))
const start = performance.now()
const opening = openLab()
endWith(opening)
const lab = await opening
const results: PartResult[] = []
try {
  for (const part of chosen) {
    const result = await runPart(part, lab, options)
    results.push(result)
    if (!keeps(part)) continue
    await saveResult(result)
    await writeReport(await readResults())
  }
} finally {
  await lab.close()
}
if (options.quick) console.log('\nNo goal is judged by sizes as small as these, and nothing was kept.')
else tellVerdicts()
console.log(`Took ${Math.round((performance.now() - start) / 1000)} s.`)
