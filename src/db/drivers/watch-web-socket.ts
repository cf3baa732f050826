/** A WebSocket that may be of the `ws` package: only those can ping. */
export interface PingableSocket {
  ping?(): void
  terminate?(): void
  on?(event: 'pong', listener: () => void): unknown
}

/** An answer may take one interval, so a dead peer is noticed within 20 s. */
const pingMs = 10_000

/**
 * Pings a WebSocket and calls `onDead` when the peer has left a ping unanswered. Does nothing for a
 * socket that cannot ping.
 *
 * @returns stops watching
 */
export function watchWebSocket(
  socket: PingableSocket | null,
  onDead: () => void,
  intervalMs: number = pingMs,
): () => void {
  if (socket?.ping === undefined || socket.on === undefined) return () => {}
  let answered = true
  socket.on('pong', () => {
    answered = true
  })
  const timer = setInterval(() => {
    if (!answered) return onDead()
    answered = false
    socket.ping?.()
  }, intervalMs)
  return () => clearInterval(timer)
}
