import { connect } from 'node:net'
import { createWebSocketStream, type WebSocket } from 'ws'
import type { Log } from '../ports.ts'
import type { Target } from './target.ts'

/** A half-open connection on either side is found by TCP keepalive, started after this long. */
const KEEPALIVE_MS = 15_000

/**
 * Passes bytes between a WebSocket and the target until either side ends, and
 * then ends the other: in order after a clean end, at once after a reset.
 */
export function openTunnel(socket: WebSocket, target: Target, log: Log): void {
  const near = createWebSocketStream(socket)
  const far = connect(target.socket)
  far.setNoDelay(true)
  far.setKeepAlive(true, KEEPALIVE_MS)
  near.on('error', (error) => {
    log.debug({ error: error.message }, 'A client of the Neon gateway was lost.')
    far.destroy()
  })
  far.on('error', (error) => {
    log.debug({ error: error.message }, 'A tunnel of the Neon gateway lost its Postgres.')
    near.destroy()
  })
  near.on('close', () => far.destroySoon())
  near.pipe(far)
  far.pipe(near)
}
