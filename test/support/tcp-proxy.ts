import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { createWaiters } from './waiters.ts'

/** What happens to bytes and to new connections. */
type Mode = 'open' | 'refuse' | 'blackhole'

/** A TCP proxy on loopback that breaks the way networks do. */
export interface TcpProxy {
  host: string
  port: number
  /** Resets all connections; new ones get through. */
  cut(): void
  /** Resets all connections and every new one at once. */
  refuse(): void
  /** Keeps connections, accepts new ones, and swallows everything: no data, no end, no reset. */
  blackhole(): void
  /**
   * Swallows everything on the connections that there are, and lets new ones through. One of them ends once
   * the side that connected leaves it.
   */
  silence(): void
  /** Lets everything through again. What was swallowed stays lost, and those who lost it are reset. */
  heal(): void
  /** How many connections are open. */
  connections(): number
  /** How many connections ever came. */
  accepted(): number
  /** Resolves once `count` connections have come since the start. */
  waitForAccepted(count: number, timeoutMs?: number): Promise<void>
  close(): Promise<void>
  /** A connection string with the proxy in place of its host and port. */
  through(url: string): string
}

interface Pair {
  near: Socket
  far: Socket | undefined
  /** Whether bytes of this connection were lost. */
  swallowed: boolean
  /** Whether all bytes of it get lost from now on. */
  silent: boolean
}

interface State {
  mode: Mode
  pairs: Set<Pair>
}

/** @param target where connections lead to */
export async function createTcpProxy(target: { host: string; port: number }): Promise<TcpProxy> {
  const state: State = { mode: 'open', pairs: new Set() }
  const waiters = createWaiters()
  let accepted = 0
  const resetAll = (): void => state.pairs.forEach((pair) => reset(state, pair))
  // Half-open, so that the end of one direction leaves the other alone.
  const server = createServer({ allowHalfOpen: true }, (near) => {
    accepted += 1
    near.on('error', () => {})
    if (state.mode === 'refuse') near.resetAndDestroy()
    else openPair(state, near, target)
    waiters.changed()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo

  return {
    host: '127.0.0.1',
    port,
    cut: resetAll,
    refuse() {
      state.mode = 'refuse'
      resetAll()
    },
    blackhole() {
      state.mode = 'blackhole'
    },
    silence() {
      state.mode = 'open'
      state.pairs.forEach((pair) => void (pair.silent = true))
    },
    heal() {
      state.mode = 'open'
      state.pairs.forEach((pair) => pair.swallowed && reset(state, pair))
    },
    connections: () => state.pairs.size,
    accepted: () => accepted,
    waitForAccepted: (count, timeoutMs = 10_000) =>
      waiters.until(
        () => accepted >= count,
        timeoutMs,
        () => `${accepted} of ${count} connections came`,
      ),
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      resetAll()
      await closed
    },
    through(url) {
      const changed = new URL(url)
      changed.host = `127.0.0.1:${port}`
      return changed.href
    },
  }
}

function openPair(state: State, near: Socket, target: { host: string; port: number }): void {
  const through = state.mode === 'open'
  const far = through ? connect({ ...target, allowHalfOpen: true }) : undefined
  const pair: Pair = { near, far, swallowed: !through, silent: false }
  state.pairs.add(pair)
  forward(state, pair, near, far)
  if (far !== undefined) forward(state, pair, far, near)
}

function forward(state: State, pair: Pair, from: Socket, to: Socket | undefined): void {
  from.setNoDelay(true)
  const lost = (): boolean => state.mode === 'blackhole' || pair.silent
  from.on('error', () => {
    if (lost()) pair.swallowed = true
    else reset(state, pair)
  })
  from.on('data', (bytes) => {
    if (lost() || to === undefined) pair.swallowed = true
    else if (!to.write(bytes)) pauseUntilDrained(from, to)
  })
  from.on('end', () => {
    if (pair.silent && from === pair.near) reset(state, pair)
    else if (lost()) pair.swallowed = true
    else to?.end()
  })
  from.on('close', () => {
    if (pair.near.destroyed && (pair.far?.destroyed ?? true)) state.pairs.delete(pair)
  })
}

function reset(state: State, pair: Pair): void {
  pair.near.resetAndDestroy()
  pair.far?.resetAndDestroy()
  state.pairs.delete(pair)
}

function pauseUntilDrained(from: Socket, to: Socket): void {
  from.pause()
  to.once('drain', () => from.resume())
}
