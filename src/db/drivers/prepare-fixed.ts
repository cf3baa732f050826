import { nameOfFixed } from '../fixed-statement.ts'

/** What of `pg`'s Client is needed here. */
export interface PreparingClient {
  query(config: never): unknown
  /** The number of its backend, as the server, or whoever stands before it, named it. */
  processID?: number | null
}

type Query = (config: unknown, values?: unknown, callback?: unknown) => unknown

/** A session that is used less is not worth the question. */
const worthAsking = 5

/**
 * Lets a session keep our fixed statements prepared: to parse and plan one anew takes the server about as long as to
 * read a few events.
 *
 * Only where the session is the client's own. Behind a pooler in transaction mode the next statement may meet another
 * session; there the number of the backend that the client was given is made up by the pooler, so the server is asked
 * for the true one, once, with the fifth fixed statement.
 */
export function prepareFixed(client: PreparingClient): void {
  const query = client.query.bind(client) as Query
  let own: boolean | undefined
  let seen = 0

  async function ask(): Promise<void> {
    try {
      const { rows } = (await query('select pg_backend_pid() as pid')) as { rows: [{ pid: number }] }
      own = rows[0].pid === client.processID
    } catch {
      // in a transaction that has failed, say; whether the session is lost is for the next statement to find out
      seen = 0
    }
  }

  const prepared: Query = (config, values, callback) => {
    const name = isPlain(config) ? nameOfFixed(config.text) : undefined
    if (name === undefined || own === false) return query(config, values, callback)
    if (own) return query({ ...(config as object), name }, values, callback)
    if (++seen < worthAsking) return query(config, values, callback)
    const asked = ask()
    if (typeof callback !== 'function') return asked.then(() => prepared(config, values))
    void asked.then(() => prepared(config, values, callback))
    return undefined
  }
  client.query = prepared as PreparingClient['query']
}

/** A statement with parameters, as Drizzle sends it, that has no name yet. */
function isPlain(config: unknown): config is { text: string } {
  return (
    typeof config === 'object' && config !== null && 'text' in config && !(config as { name?: string }).name
  )
}
