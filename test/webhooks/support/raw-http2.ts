import { createServer, type TLSSocket } from 'node:tls'
import type { AddressInfo } from 'node:net'
import type { Certificate } from './certificates.ts'

/** Frames of one stream, for answers that no HTTP/2 server gives. */
export interface RawStream {
  /** From 1, as their connection came. */
  connection: number
  /** Status 200; `length` is the content-length. */
  head(length?: number, end?: boolean): void
  data(text: string, end?: boolean): void
  reset(code: number): void
  /** Closes the connection without a word. */
  cut(): void
  /** Says that no stream above the given one is looked at. */
  goAway(code: number, lastStreamId: number): void
  id: number
}

const type = { data: 0, headers: 1, reset: 3, settings: 4, goAway: 7 }
const prefaceBytes = 24
const endStream = 1
const endHeaders = 4

/** Starts a TLS server that speaks HTTP/2 frame by frame; `answer` is called for every request's head. */
export async function startRawHttp2(certificate: Certificate, answer: (stream: RawStream) => void) {
  const sockets: TLSSocket[] = []
  const server = createServer({ ...certificate, ALPNProtocols: ['h2'] }, (socket) => {
    const connection = sockets.push(socket)
    socket.on('error', () => {})
    socket.write(frame(type.settings, 0, 0))
    let rest: Buffer = Buffer.alloc(0)
    let skip = prefaceBytes
    socket.on('data', (bytes: Buffer) => {
      rest = Buffer.concat([rest, bytes])
      for (;;) {
        if (rest.length < skip + 9) return
        const end = skip + 9 + rest.readUIntBE(skip, 3)
        if (rest.length < end) return
        const [kind, id] = [rest.readUInt8(skip + 3), rest.readUInt32BE(skip + 5)]
        rest = rest.subarray(end)
        skip = 0
        if (kind === type.headers) answer(streamOf(socket, connection, id))
      }
    })
  })
  server.on('tlsClientError', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    connections: () => sockets.length,
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function streamOf(socket: TLSSocket, connection: number, id: number): RawStream {
  const flags = (end: boolean): number => (end ? endStream : 0)
  return {
    connection,
    id,
    head(length, end = false) {
      // HPACK: `:status 200` is entry 8 of the static table, `content-length` is 28
      const value = Buffer.from(String(length))
      const parts = length === undefined ? [[0x88]] : [[0x88, 0x0f, 0x0d, value.length], value]
      socket.write(frame(type.headers, endHeaders | flags(end), id, Buffer.concat(parts.map(Buffer.from))))
    },
    data: (text, end = false) => void socket.write(frame(type.data, flags(end), id, Buffer.from(text))),
    reset: (code) => void socket.write(frame(type.reset, 0, id, numbers(code))),
    cut: () => void socket.destroy(),
    goAway: (code, lastStreamId) => void socket.write(frame(type.goAway, 0, 0, numbers(lastStreamId, code))),
  }
}

function frame(kind: number, flags: number, id: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(kind, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(id, 5)
  return Buffer.concat([head, payload])
}

function numbers(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [n, value] of values.entries()) bytes.writeUInt32BE(value, 4 * n)
  return bytes
}
