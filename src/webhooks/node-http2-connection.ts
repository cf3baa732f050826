import { connect, constants, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { connectionReset } from './send-error.ts'

/** A connection on which nothing moved for so long takes no new requests, and ends with the last it has. */
const idleMs = 4_000

/** One on which nothing came for so long while requests wait may be dead: others go elsewhere meanwhile. */
const silentMs = 4_000

/** One HTTP/2 connection, from before it is open until it is closed. */
export interface Http2Connection {
  /** Resolves once the peer has said what it allows; rejects where it does not speak HTTP/2, among others. */
  ready: Promise<ClientHttp2Session>
  /** So many bytes came from the peer since it is open. */
  heardBytes(): number
  /** Requests that are under way on it or wait for it. */
  users(): number
  /** So many at once the peer takes. */
  limit(): number
  /** Whether it takes requests, and is not silent. */
  usable(): boolean
  /** Whether it has room for one more. */
  free(): boolean
  /** Whether the peer says that it did not look at the request. */
  refused(stream: ClientHttp2Stream): boolean
  enter(): void
  leave(): void
  /** It takes no new requests, and ends with the last it has. */
  retire(): void
  /** Ends it with all that is under way. */
  end(): void
}

/**
 * Takes `expectedLimit` for what the peer takes at once until it has said so.
 *
 * @param forget called once, when it takes no more requests
 */
export function createHttp2Connection(
  { origin, opening, expectedLimit }: { origin: string; opening: Promise<Socket>; expectedLimit: number },
  forget: () => void,
): Http2Connection {
  let socket: Socket | null = null
  let session: ClientHttp2Session | null = null
  let users = 0
  let retired = false
  let lastStreamId = Infinity
  let limit = expectedLimit
  const heardBytes = (): number => socket?.bytesRead ?? 0
  const isSilent = watchSilence(heardBytes)

  /** Not closed politely: to a peer that is not there any more, that never comes to an end. */
  function endUnused(): void {
    if (retired && users === 0) session?.destroy()
  }

  function retire(): void {
    if (!retired) forget()
    retired = true
    endUnused()
  }

  async function begin(): Promise<ClientHttp2Session> {
    const opened = await opening
    if (retired && users === 0) throw refuse(opened, connectionReset('nobody waits for the connection'))
    session = startSession(origin, opened)
    socket = opened
    session.on('remoteSettings', (said) => void (limit = said.maxConcurrentStreams ?? Infinity))
    session.on('goaway', (_code, lastId) => void (lastStreamId = lastId))
    for (const event of ['close', 'goaway', 'error'] as const) session.on(event, retire)
    session.setTimeout(idleMs, retire)
    return settled(session)
  }

  const closing = (): boolean => session !== null && (session.closed || session.destroyed)
  const usable = (): boolean => !retired && !closing() && !isSilent(users > 0)
  const ready = begin()
  ready.catch(retire)
  return {
    ready,
    heardBytes,
    users: () => users,
    limit: () => limit,
    usable,
    free: () => usable() && users < limit,
    refused: ({ id, rstCode }) => rstCode === constants.NGHTTP2_REFUSED_STREAM || (id ?? 0) > lastStreamId,
    enter: () => void users++,
    leave() {
      users--
      endUnused()
    },
    retire,
    end() {
      retire()
      session?.destroy()
    },
  }
}

/** Whether requests have been waiting for {@link silentMs} without a byte; asked before each that joins them. */
function watchSilence(heardBytes: () => number): (waiting: boolean) => boolean {
  let last = { bytes: 0, atMs: performance.now() }
  return (waiting) => {
    const bytes = heardBytes()
    if (!waiting || bytes !== last.bytes) last = { bytes, atMs: performance.now() }
    return performance.now() - last.atMs > silentMs
  }
}

function startSession(origin: string, socket: Socket): ClientHttp2Session {
  if ((socket as TLSSocket).alpnProtocol !== 'h2') throw refuse(socket, noHttp2())
  return connect(origin, { createConnection: () => socket, settings: { enablePush: false } })
}

function noHttp2(): Error {
  const code = 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL'
  return Object.assign(new Error('the receiver does not speak HTTP/2'), { code })
}

function refuse(socket: Socket, error: Error): Error {
  socket.destroy()
  return error
}

/** Whoever sends before the peer's settings came may send more at once than it takes. */
function settled(session: ClientHttp2Session): Promise<ClientHttp2Session> {
  return new Promise((resolve, reject) => {
    session.once('remoteSettings', () => resolve(session))
    session.once('error', reject)
    session.once('close', () => reject(connectionReset('the connection was closed before it was ready')))
  })
}
