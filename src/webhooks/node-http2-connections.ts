import type { Socket } from 'node:net'
import { createHttp2Connection, type Http2Connection } from './node-http2-connection.ts'
import { createGuardedConnector, type TargetGuardOptions } from './node-target-guard.ts'

/** The attempt's own deadline is the one that rules. */
const connectTimeoutMs = 30_000
/** Peers commonly take a hundred requests at once on each. */
const maxPerOrigin = 10

/** HTTP/2 connections to any number of origins, each made when it is needed. */
export interface Http2Connections {
  /** One that has room, or a new one; where there are too many already, the one with the least to do. */
  pick(url: URL): Http2Connection
  /** Whether {@link Http2Connections.pick} would give one with room. */
  hasRoom(url: URL): boolean
  /** Ends them all. */
  end(): void
}

export function createHttp2Connections(options: TargetGuardOptions): Http2Connections {
  const connector = createGuardedConnector({ ...options, connectTimeoutMs, http2: true })
  /** Those that take requests. */
  const origins = new Map<string, Http2Connection[]>()
  /** Those, and what is about to end. */
  const all = new Set<Http2Connection>()

  function connect({ hostname, host, protocol, port }: URL): Promise<Socket> {
    return new Promise((resolve, reject) => {
      connector({ hostname, host, protocol, port: port || '443' }, (error, socket) =>
        error === null ? resolve(socket) : reject(error),
      )
    })
  }

  function forget(origin: string, connection: Http2Connection): void {
    const left = (origins.get(origin) ?? []).filter((one) => one !== connection)
    if (left.length === 0) origins.delete(origin)
    else origins.set(origin, left)
  }

  function open(url: URL): Http2Connection {
    const { origin } = url
    const others = origins.get(origin) ?? []
    const expectedLimit = others[0]?.limit() ?? Infinity
    const connection: Http2Connection = createHttp2Connection(
      { origin, opening: connect(url), expectedLimit },
      () => forget(origin, connection),
    )
    origins.set(origin, [...others, connection])
    all.add(connection)
    const over = (): void => void all.delete(connection)
    connection.ready.then((session) => session.once('close', over), over)
    return connection
  }

  /** One that the peer is closing is not forgotten yet, and one that is silent may speak again. */
  const usable = ({ origin }: URL): Http2Connection[] =>
    (origins.get(origin) ?? []).filter((connection) => connection.usable())

  return {
    pick(url) {
      const some = usable(url)
      // the first with room, so that the others may end
      const free = some.find((connection) => connection.free())
      if (free !== undefined) return free
      if (some.length < maxPerOrigin) return open(url)
      return some.reduce((least, one) => (one.users() < least.users() ? one : least))
    },
    hasRoom(url) {
      const some = usable(url)
      return some.length < maxPerOrigin || some.some((connection) => connection.free())
    },
    end() {
      for (const connection of all) connection.end()
    },
  }
}
