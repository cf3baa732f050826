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
    versions: await readVersions(),
    notes: open.notes ?? [],
    cases,
  }
}

const options = readOptions(
  process.argv.slice(2),
  parts.map(({ name }) => name),
)
const chosen = parts.filter(({ name }) => options.parts.length === 0 || options.parts.includes(name))
const start = performance.now()
const lab = await openLab()
const results: PartResult[] = []
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  // the server runs in a session of its own and would outlive this
  process.once(signal, () => void lab.close().finally(() => process.exit(1)))
}
try {
  for (const part of chosen) {
    const result = await runPart(part, lab, options)
    results.push(result)
    if (options.keep) await saveResult(result)
  }
} finally {
  await lab.close()
}
console.log(`\nGoals, by the median of ${options.rounds} rounds:`)
for (const goal of goals) {
  const verdict = judge(goal, results)
  if (verdict !== undefined) console.log(`  ${verdictLine(verdict)}`)
}
if (options.keep) await writeReport(await readResults())
else console.log('Nothing was kept: that takes five rounds and the full sizes.')
console.log(`Took ${Math.round((performance.now() - start) / 1000)} s.`)
