import pg from 'pg'
import type { DirectConnection } from '../../../src/db/port.ts'

/**
 * A transaction-mode pooler: many clients, one server session, lent out for one statement at a time.
 * Like PgBouncer it accepts LISTEN, passes on what the server says during a client's statement, and
 * drops what it says while the session is lent to nobody.
 */
export async function startPooler(
  url: string,
): Promise<{ connect(): Promise<DirectConnection>; close(): Promise<void> }> {
  const server = new pg.Client({ connectionString: url })
  await server.connect()
  let borrower: ((channel: string, payload: string) => void) | undefined
  let queue: Promise<unknown> = Promise.resolve()
  server.on('notification', ({ channel, payload }) => borrower?.(channel, payload ?? ''))
  const lend = <T>(listener: typeof borrower, statement: () => Promise<T>): Promise<T> => {
    const result = queue.then(async () => {
      borrower = listener
      try {
        return await statement()
      } finally {
        borrower = undefined
      }
    })
    queue = result.catch(() => {})
    return result
  }
  return {
    async connect() {
      let listener: typeof borrower
      let ended = (): void => {}
      return {
        query: (text, parameters) => lend(listener, async () => (await server.query(text, parameters)).rows),
        execute: (script) => lend(listener, async () => void (await server.query(script))),
        onNotification: (fn) => (listener = fn),
        onClose: (fn) => (ended = fn),
        close: async () => ended(),
      }
    },
    close: () => server.end(),
  }
}
