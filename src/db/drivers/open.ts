import { MillraceError } from '../../errors/millrace-error.ts'
import type { Db } from '../port.ts'
import type { GatewayAddress } from './gateway-address.ts'

/** The drivers that a URL can be opened with. */
export type DriverName = 'node-postgres' | 'neon-ws' | 'neon-http'

/** What {@link openDb} takes. */
export interface OpenDbOptions {
  /** `DATABASE_URL`. */
  url: string
  /** `DATABASE_URL_UNPOOLED`, for LISTEN and migrations. Default: `url`, on Neon its direct host. */
  directUrl?: string
  /** `MILLRACE_SCHEMA`. Default `millrace`. */
  schema?: string
  /** `MILLRACE_ENVIRONMENT`. Default none. */
  environment?: string | null
  /**
   * Default `auto`: node-postgres for every URL, Neon's too, since TCP is the fastest way from Node.
   * `neon-ws` is for networks that let nothing but HTTPS out.
   */
  driver?: DriverName | 'auto'
  /** The most connections in the pool. Default 10. */
  maxConnections?: number
  /** What `pg_stat_activity` shows. Default `millrace`. */
  applicationName?: string
  /** For the Neon drivers: a gateway to an ordinary Postgres. */
  gateway?: GatewayAddress
}

/**
 * Opens a database on Node. Nothing is connected before the first call; only the driver in use is
 * loaded.
 *
 * @throws INVALID_SETTING, in one line that never shows the URL
 */
export async function openDb(options: OpenDbOptions): Promise<Db> {
  const { driver = 'auto', ...rest } = options
  switch (driver) {
    case 'auto':
    case 'node-postgres':
      return (await import('./node-postgres.ts')).createNodePostgresDb(rest)
    case 'neon-ws':
      return (await import('./neon-ws-node.ts')).createNodeNeonWsDb(rest)
    case 'neon-http':
      return (await import('./neon-http.ts')).createNeonHttpDb(rest)
    default:
      throw new MillraceError(
        'INVALID_SETTING',
        `driver "${String(driver)}" must be auto, node-postgres, neon-ws or neon-http`,
      )
  }
}
