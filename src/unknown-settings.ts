import type { Environment } from './settings.ts'

/** Every variable of Millrace's own that some part of it reads. */
const known = [
  'MILLRACE_ALLOWED_TARGETS',
  'MILLRACE_ALLOW_INSECURE_TARGETS',
  'MILLRACE_DATA_DIR',
  'MILLRACE_DOORBELL_HOST',
  'MILLRACE_DOORBELL_PORT',
  'MILLRACE_DOORBELL_SECRET',
  'MILLRACE_DOORBELL_URL',
  'MILLRACE_EMBEDDED',
  'MILLRACE_ENCRYPTION_KEY',
  'MILLRACE_ENVIRONMENT',
  'MILLRACE_KEY',
  'MILLRACE_LEASE_MS',
  'MILLRACE_LISTEN',
  'MILLRACE_LOG_LEVEL',
  'MILLRACE_NEON_GATEWAY',
  'MILLRACE_POLL_MAX_MS',
  'MILLRACE_POLL_MIN_MS',
  'MILLRACE_PREVIOUS_ENCRYPTION_KEYS',
  'MILLRACE_QUEUE',
  'MILLRACE_ROOT_KEY',
  'MILLRACE_SCHEMA',
  'MILLRACE_SLEEP',
  'MILLRACE_SLEEP_AFTER_MS',
  'MILLRACE_SLEEP_MAX_MS',
  'MILLRACE_SUBREQUESTS',
  'MILLRACE_URL',
]

/** Those are for Millrace's own tests. */
const forTests = /^MILLRACE_(TEST|LONG_TESTS|NODE)/

/** A variable that looks like one of ours and is none, and the one that was probably meant. */
export interface UnknownSetting {
  name: string
  /** Null: none is near. */
  nearest: string | null
}

/** Variables named `MILLRACE_…` that nothing reads: a typing error would otherwise be ignored in silence. */
export function unknownSettings(env: Environment): UnknownSetting[] {
  return Object.keys(env)
    .filter((name) => name.startsWith('MILLRACE_') && !forTests.test(name) && !known.includes(name))
    .toSorted()
    .map((name) => ({ name, nearest: nearestOf(name) }))
}

/** Says in the log which variables nothing reads. */
export function warnOfUnknownSettings(
  env: Environment,
  log: { warn(facts: object, message: string): void },
): void {
  for (const { name, nearest } of unknownSettings(env)) {
    const hint = nearest === null ? '' : `: is ${nearest} meant?`
    log.warn({ setting: name, nearest }, `nothing reads the variable ${name}${hint}`)
  }
}

function nearestOf(name: string): string | null {
  const longer = known.find((other) => other.startsWith(name))
  if (longer !== undefined) return longer
  const [best] = known
    .map((other) => ({ other, far: distance(name, other) }))
    .toSorted((a, b) => a.far - b.far)
  // a third of its letters wrong is another word
  return best !== undefined && best.far <= (name.length - 'MILLRACE_'.length) / 3 + 1 ? best.other : null
}

/** How many letters have to be put in, left out or replaced. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1]
    for (const [j, other] of [...b].entries()) {
      next.push(Math.min(next[j]! + 1, row[j + 1]! + 1, row[j]! + (letter === other ? 0 : 1)))
    }
    row = next
  }
  return row[b.length]!
}
