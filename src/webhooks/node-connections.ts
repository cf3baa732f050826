import { Client } from 'undici'

/** Connections to any number of origins, each lent to one request at a time. */
export interface Connections {
  /** One that is free, the one used last first; a new one where none is. */
  take(origin: string): Client
  /** Its request is over: it serves the next one. */
  giveBack(origin: string, client: Client): void
  /** Ends them all. */
  destroy(): Promise<void>
}

interface Origin {
  free: Client[]
  /** Free ones and lent ones. */
  all: Set<Client>
}

/**
 * Stands in for undici's Agent and its pools. They learn that a connection is free a turn of the event loop after
 * its answer, by when it has been made idle with timers and checks of its own, or one more was opened; and they
 * look for it through all connections. Here whoever ends a request hands its connection on.
 */
export function createConnections(options: Client.Options): Connections {
  const origins = new Map<string, Origin>()

  /** It has lost its socket. One that is lent makes another for what it still has to send. */
  function drop(name: string, client: Client): void {
    const origin = origins.get(name)
    const at = origin?.free.indexOf(client) ?? -1
    if (origin === undefined || at < 0) return
    origin.free.splice(at, 1)
    origin.all.delete(client)
    if (origin.all.size === 0) origins.delete(name)
    client.close(() => {})
  }

  function open(name: string, { all }: Origin): Client {
    const client = new Client(name, options)
    client.on('disconnect', () => drop(name, client))
    client.on('connectionError', () => drop(name, client))
    all.add(client)
    return client
  }

  return {
    take(name) {
      let origin = origins.get(name)
      if (origin === undefined) {
        origin = { free: [], all: new Set() }
        origins.set(name, origin)
      }
      return origin.free.pop() ?? open(name, origin)
    },
    giveBack: (name, client) => void origins.get(name)?.free.push(client),
    async destroy() {
      const clients = [...origins.values()].flatMap(({ all }) => [...all])
      await Promise.all(clients.map((client) => client.destroy()))
    },
  }
}
