import { readdir, readFile, writeFile } from 'node:fs/promises'
import type { Sample } from './case.ts'
import type { Machine } from './machine.ts'

/** What a run of a part brought: the raw figures. */
export interface PartResult {
  part: string
  /** ISO 8601. */
  startedAt: string
  seconds: number
  rounds: number
  full: boolean
  machine: Machine
  /** Packages that took part, with their versions. */
  versions: Record<string, string>
  notes: string[]
  cases: CaseResult[]
}

export interface CaseResult {
  id: string
  title: string
  units: Record<string, string>
  contestants: { name: string; settings?: string; samples: Sample[] }[]
}

const folder = new URL('../results/', import.meta.url)

export async function saveResult(result: PartResult): Promise<void> {
  await writeFile(new URL(`${result.part}.json`, folder), `${JSON.stringify(result, null, 2)}\n`)
}

/** All results that are kept, also of runs before this one. */
export async function readResults(): Promise<PartResult[]> {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.json')).toSorted()
  return Promise.all(
    files.map(async (name) => JSON.parse(await readFile(new URL(name, folder), 'utf8')) as PartResult),
  )
}
