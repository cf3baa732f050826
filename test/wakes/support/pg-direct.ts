import pg from 'pg'
import type { DirectConnection } from '../../../src/db/port.ts'

/** A dedicated session over node-postgres. */
export async function connectPg(url: string, signal?: AbortSignal): Promise<DirectConnection> {
  const client = new pg.Client({ connectionString: url, application_name: 'forwarder' })
  client.on('error', () => {})
  const abort = (): void =>
    void (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy()
  signal?.addEventListener('abort', abort)
  try {
    await client.connect()
  } finally {
    signal?.removeEventListener('abort', abort)
  }
  return {
    query: async (text, parameters) =>
      (await client.query(text, parameters)).rows as Record<string, unknown>[],
    execute: async (script) => void (await client.query(script)),
    onNotification: (listener) => void client.on('notification', (n) => listener(n.channel, n.payload ?? '')),
    onClose(listener) {
      let error: Error | undefined
      client.on('error', (e) => (error ??= e))
      client.once('end', () => listener(error))
    },
    async close() {
      const bound = setTimeout(abort, 1000)
      await client.end().catch(() => {})
      clearTimeout(bound)
    },
  }
}
