import { getPostgreSQLEventStore } from '@event-driven-io/emmett-postgresql'
import type { EventLog } from '../harness/event-log.ts'

export async function openEmmett(url: string): Promise<EventLog> {
  const store = getPostgreSQLEventStore(url)
  await store.schema.migrate()
  return {
    name: 'emmett',
    settings: {
      append:
        'appendToStream, a stream for each client, no version expected; the ten connections of its own pool',
      read: 'readStream in pages of 1,000',
    },
    async append(stream, many) {
      await store.appendToStream(
        stream,
        many.map((data) => ({ type: 'bench.event', data })),
      )
    },
    async read(stream, after, limit) {
      const { events } = await store.readStream(stream, {
        from: BigInt(after + 1),
        maxCount: BigInt(limit),
      })
      return { count: events.length, next: after + events.length }
    },
    close: () => store.close(),
  }
}
