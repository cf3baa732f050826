import type { Case, Contestant, Sample } from './case.ts'
import { compact } from './format.ts'
import type { CaseResult } from './results.ts'

/**
 * Measures a case: in each round every contestant once, one after the other, each round beginning with another
 * one. What slows the machine for a while thus slows all of them. One round before the first does not count: in
 * it connections are made, plans are cached and code is compiled.
 */
export async function measureCase(measured: Case, rounds: number): Promise<CaseResult> {
  const { contestants } = measured
  console.log(`\n  ${measured.title}`)
  const samples = new Map<Contestant, Sample[]>(contestants.map((contestant) => [contestant, []]))
  if (!measured.once && rounds > 1) for (const contestant of contestants) await contestant.measure()
  for (let round = 0; round < (measured.once ? 1 : rounds); round++) {
    const line: string[] = []
    for (const contestant of rotated(contestants, round)) {
      const sample = await contestant.measure()
      samples.get(contestant)!.push(sample)
      line.push(`${contestant.name} ${Object.values(sample).map(compact).join(' / ')}`)
    }
    console.log(`    ${round + 1}: ${line.toSorted().join('   ')}`)
  }
  return {
    id: measured.id,
    title: measured.title,
    units: measured.units,
    contestants: contestants.map((contestant) => ({
      name: contestant.name,
      ...(contestant.settings === undefined ? {} : { settings: contestant.settings }),
      samples: samples.get(contestant)!,
    })),
  }
}

function rotated<T>(values: readonly T[], by: number): T[] {
  const at = by % values.length
  return [...values.slice(at), ...values.slice(0, at)]
}
