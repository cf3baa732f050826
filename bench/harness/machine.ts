import { readFile } from 'node:fs/promises'
import { cpus, loadavg, release, totalmem, type } from 'node:os'

/** What the figures were measured on. */
export interface Machine {
  cpu: string
  cores: number
  memoryGb: number
  system: string
  node: string
  postgres: string
  /** The load of the last minute before the run: what else the machine was doing. */
  loadBefore: number
}

export function describeMachine(postgres: string): Machine {
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    node: process.version,
    postgres,
    loadBefore: Number((loadavg()[0] ?? 0).toFixed(2)),
  }
}

const packages = [
  'pg-boss',
  'graphile-worker',
  '@event-driven-io/emmett-postgresql',
  'bullmq',
  'pg',
  'undici',
]

/** The versions of what takes part, as they are installed. BullMQ does only where there is a Redis. */
export async function readVersions(contestants: readonly string[]): Promise<Record<string, string>> {
  const versions: Record<string, string> = {}
  for (const name of packages.filter((name) => name !== 'bullmq' || contestants.includes(name))) {
    const version =
      (await versionIn('../node_modules', name)) ?? (await versionIn('../../node_modules', name))
    if (version !== undefined) versions[name] = version
  }
  return versions
}

async function versionIn(modules: string, name: string): Promise<string | undefined> {
  const file = new URL(`${modules}/${name}/package.json`, import.meta.url)
  const text = await readFile(file, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : (JSON.parse(text) as { version: string }).version
}
