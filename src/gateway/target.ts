import type { NetConnectOpts } from 'node:net'
import pg from 'pg'
import { MillraceError } from '../errors/millrace-error.ts'

/** The one Postgres that a gateway leads to. */
export interface Target {
  /** A host name, an address, or the folder of a Unix socket. */
  host: string
  port: number
  socket: NetConnectOpts
}

/**
 * Reads host and port of a connection string the way `pg` does.
 *
 * @throws INVALID_SETTING when it asks for TLS: the gateway passes bytes on as they are
 */
export function readTarget(connectionString: string): Target {
  const { host, port, ssl } = new pg.Client({ connectionString })
  if (ssl) {
    throw new MillraceError(
      'INVALID_SETTING',
      'The Neon gateway does not speak TLS to its Postgres; it is for a local one.',
    )
  }
  const socket = host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port }
  return { host, port, socket }
}
