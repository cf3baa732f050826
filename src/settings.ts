import { MillraceError } from './errors/millrace-error.ts'
import { assertSchemaName } from './schema/names.ts'
import { parseAllowedTargets } from './webhooks/allowed-targets.ts'

/** What the environment (process.env, or the bindings of an edge worker) says. */
export interface Settings {
  /** The database; null: the embedded one. */
  databaseUrl: string | null
  /** The direct (unpooled) address, for LISTEN and migrations; null: derived from `databaseUrl`. */
  directUrl: string | null
  /** Which embedded database. Default `postgres`. */
  embedded: 'postgres' | 'pglite'
  /** Where the embedded database lives. Default `.millrace`. */
  dataDir: string
  /** The Postgres schema. Default `millrace`. */
  schema: string
  rootKey: string | null
  encryptionKey: string | null
  /** Earlier encryption keys, which still open what they sealed. */
  previousEncryptionKeys: string[]
  environment: string | null
  allowInsecureTargets: boolean
  /** Private ranges that webhooks may reach all the same. Default none. */
  allowedTargets: string[]
  /** Port of the HTTP server. Default 8787. */
  port: number
  /** False behind a transaction-mode pooler: polling only. Default true. */
  listen: boolean
  /** How long a forwarder that died keeps its webhooks from others, in milliseconds. Default 30000. */
  leaseMs: number
  /** Requests that one invocation at the edge may make, statements included. Default 50, minimum 20. */
  subrequests: number
}

/** Environment variables, or bindings: only texts count. */
export type Environment = Record<string, unknown>

/**
 * Reads the settings. An empty variable counts as absent.
 *
 * @throws INVALID_SETTING, naming the variable
 */
export function readSettings(env: Environment): Settings {
  const schema = text(env, 'MILLRACE_SCHEMA') ?? 'millrace'
  assertSchemaName(schema)
  return {
    databaseUrl: databaseUrl(env, 'DATABASE_URL'),
    directUrl: databaseUrl(env, 'DATABASE_URL_UNPOOLED'),
    embedded: oneOf(env, 'MILLRACE_EMBEDDED', ['postgres', 'pglite']),
    dataDir: text(env, 'MILLRACE_DATA_DIR') ?? '.millrace',
    schema,
    rootKey: longEnough(env, 'MILLRACE_ROOT_KEY'),
    encryptionKey: longEnough(env, 'MILLRACE_ENCRYPTION_KEY'),
    previousEncryptionKeys: (text(env, 'MILLRACE_PREVIOUS_ENCRYPTION_KEYS') ?? '').split(',').filter(Boolean),
    environment: text(env, 'MILLRACE_ENVIRONMENT'),
    allowInsecureTargets: flag(env, 'MILLRACE_ALLOW_INSECURE_TARGETS', false),
    allowedTargets: targets(env),
    port: wholeNumber(env, 'PORT', { otherwise: 8787, min: 0, max: 65_535 }),
    listen: flag(env, 'MILLRACE_LISTEN', true),
    // shorter than a second, a busy machine loses its leases; longer than ten minutes, a crash is an outage
    leaseMs: wholeNumber(env, 'MILLRACE_LEASE_MS', { otherwise: 30_000, min: 1_000, max: 600_000 }),
    // what Cloudflare's free plan lets an invocation make; a run needs 20 to get anything done
    subrequests: wholeNumber(env, 'MILLRACE_SUBREQUESTS', { otherwise: 50, min: 20, max: 10_000 }),
  }
}

function text(env: Environment, name: string): string | null {
  const value = env[name]
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : null
}

function targets(env: Environment): string[] {
  const value = text(env, 'MILLRACE_ALLOWED_TARGETS')
  return value === null ? [] : parseAllowedTargets(value)
}

function refuse(name: string, problem: string): never {
  throw new MillraceError('INVALID_SETTING', `${name} ${problem}`, { details: { setting: name } })
}

/** The address itself is never repeated in the message: it holds a password. */
function databaseUrl(env: Environment, name: string): string | null {
  const value = text(env, name)
  if (value === null) return null
  if (!/^postgres(ql)?:\/\//.test(value)) refuse(name, 'must begin with postgres:// or postgresql://')
  if (!URL.canParse(value))
    refuse(name, 'is not a valid URL (is a special character in the password not encoded?)')
  return value
}

function oneOf<Choice extends string>(
  env: Environment,
  name: string,
  choices: readonly [Choice, ...Choice[]],
): Choice {
  const value = text(env, name)
  if (value === null) return choices[0]
  return choices.find((choice) => choice === value) ?? refuse(name, `must be one of: ${choices.join(', ')}`)
}

/** Whoever guesses such a key owns everything: 16 characters at least. */
function longEnough(env: Environment, name: string): string | null {
  const value = text(env, name)
  if (value !== null && value.length < 16) refuse(name, 'must have at least 16 characters')
  return value
}

function flag(env: Environment, name: string, otherwise: boolean): boolean {
  const value = text(env, name)
  if (value === null) return otherwise
  if (['1', 'true', 'on', 'yes'].includes(value)) return true
  if (['0', 'false', 'off', 'no'].includes(value)) return false
  return refuse(name, 'must be 1 or 0')
}

function wholeNumber(
  env: Environment,
  name: string,
  { otherwise, min, max }: { otherwise: number; min: number; max: number },
): number {
  const value = text(env, name)
  if (value === null) return otherwise
  const number = Number(value)
  if (!Number.isInteger(number) || number < min || number > max)
    refuse(name, `must be a number from ${min} to ${max}`)
  return number
}
