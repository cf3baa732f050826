import type { GatewayAddress } from '../db/drivers/gateway-address.ts'
import type { NeonHttpOptions } from '../db/drivers/neon-http.ts'
import type { Db } from '../db/port.ts'
import { MillraceError } from '../errors/millrace-error.ts'
import { readSettings, type Environment, type Settings } from '../settings.ts'
import { createSealer, type Sealer } from '../webhooks/seal.ts'

/** What is made once for an isolate and its environment: nothing here holds a connection. */
export interface Parts {
  settings: Settings
  db: Db
  sealer: Sealer | null
}

/** Opens the database by HTTP: `createNeonFetchDb`, or `createNeonHttpDb` over Neon's own driver. */
export type OpenEdgeDb = (options: NeonHttpOptions) => Db

/**
 * @throws INVALID_SETTING, naming the variable
 */
export async function makeParts(env: Environment, openDb: OpenEdgeDb): Promise<Parts> {
  const settings = readSettings(env)
  if (settings.databaseUrl === null) throw missing('DATABASE_URL')
  const { encryptionKey, previousEncryptionKeys } = settings
  const sealer =
    encryptionKey === null
      ? null
      : await createSealer({ current: encryptionKey, previous: previousEncryptionKeys })
  const db = openDb({
    url: settings.databaseUrl,
    schema: settings.schema,
    environment: settings.environment,
    gateway: gatewayOf(env),
  })
  return { settings, db, sealer }
}

/** The one error for a setting that has to be there. */
export function missing(setting: string): MillraceError {
  return new MillraceError('INVALID_SETTING', `${setting} is not set`, { details: { setting } })
}

/**
 * Makes something once for each environment. Bindings do not change within an isolate, but tests and
 * platforms may run several environments in one. What is shared is the result, never the promise: on
 * Workers a promise belongs to its request, and hangs whoever else awaits it when that request is gone.
 */
export function onceFor<Made extends object>(
  make: (env: Environment) => Promise<Made>,
): (env: Environment) => Promise<Made> {
  const known = new WeakMap<Environment, Made>()
  return async (env) => {
    const made = known.get(env) ?? (await make(env))
    known.set(env, made)
    return made
  }
}

/** MILLRACE_NEON_GATEWAY, `host:port`: a local gateway in place of Neon, to run the edge app without one. */
function gatewayOf(env: Environment): GatewayAddress | undefined {
  const value = env.MILLRACE_NEON_GATEWAY
  if (typeof value !== 'string' || value === '') return undefined
  const [host = '', port = ''] = value.split(':')
  return { host, port: Number(port) }
}
