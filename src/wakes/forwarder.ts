import { translateError } from '../db/translate-error.ts'
import { MillraceError } from '../errors/millrace-error.ts'
import type { Ports } from '../ports.ts'
import { createBackoff, defaultBackoff, type Backoff, type BackoffOptions } from './backoff.ts'
import { assertChannelName, internalChannel } from './channel-name.ts'
import { createFanOut, type FanOut, type Listener, type ListenOptions } from './fan-out.ts'
import { createListening, type ListenSteps } from './listen.ts'
import { createModeCell, type ModeCell, type WakeModes } from './modes.ts'
import type { Connect } from './open-connection.ts'
import type { Session } from './session.ts'
import { sleep } from '../sleep.ts'
import {
  createWakeRegistry,
  isWakeSubject,
  type WakeFilter,
  type WakeRegistry,
  type WakeSignal,
  type WakeSubject,
} from './wake-signals.ts'

/** Options of {@link createForwarder}. */
export interface ForwarderOptions {
  /** Makes the dedicated session, on the direct (unpooled) host: `(signal) => db.connectDirect({ signal })`. */
  connect: Connect
  /** The Postgres schema that holds Millrace; its wakes come on the channel `<schema>.wake`. */
  schema: string
  ports: Pick<Ports, 'clock' | 'random' | 'log'>
  /** False where LISTEN cannot work; no connection is made then, and the mode is `polling`. Default true. */
  listen?: boolean
  /**
   * How often a statement proves that the server still answers; a server that does not is given 10 s.
   * Only for middleboxes that answer for a dead server: it keeps a database awake that would sleep.
   * At most 20000 to notice within 30 s. Default: never.
   */
  heartbeatMs?: number
  /** Defaults: 50 ms doubling to 2 s, reset after 30 s up. */
  backoff?: Partial<BackoffOptions>
  /** How long after a self-test that failed it is tried again. Default 300000. */
  retestMs?: number
}

/** The one LISTEN connection of a process, and everyone who waits for what it brings. */
export interface Forwarder extends WakeModes {
  /** Begins to connect, and keeps at it until `close`. Who subscribed before misses nothing. */
  start(): void
  /**
   * Subscribes to the wakes of streams and queues. Subscribe before the first read (S6). The flag is
   * also raised when the LISTEN comes to stand, at first and again.
   *
   * @throws STORE_CLOSED
   */
  subscribeWakes(filter: WakeFilter, options?: { signal?: AbortSignal }): WakeSignal
  /**
   * Listens to a channel, to which anybody may `pg_notify`.
   *
   * @throws INVALID_NAME, INVALID_INPUT, STORE_CLOSED
   */
  listen(channel: string, options?: ListenOptions): Listener
  /** Calls `fn` with each wake as it comes, `all` when some may have been missed; returns the function that ends that. */
  onWake(fn: (subject: WakeSubject | 'all') => void): () => void
  /** Raises the flag of whom a subject concerns, for word that came by another way than LISTEN. */
  ring(subject: WakeSubject | 'all'): void
  /** Why the mode is not `listening`. */
  readonly lastError: MillraceError | undefined
  /** Ends all listeners and subscriptions, and the connection; waits for a connect in flight. */
  close(): Promise<void>
}

/** What the parts of a forwarder share. */
interface Inside {
  options: ForwarderOptions
  modes: ModeCell
  wakes: WakeRegistry
  fanOut: FanOut
  backoff: Backoff
  stop: AbortController
  session: Session | undefined
  lastError: MillraceError | undefined
  /** Since the LISTENs last stood, something may have been missed. */
  interrupted: boolean
}

/** Makes a forwarder; it does nothing before `start`. */
export function createForwarder(options: ForwarderOptions): Forwarder {
  const inside = createInside(options)
  const { modes, wakes, fanOut } = inside
  let running: Promise<void> | undefined
  let closing: Promise<void> | undefined
  const assertOpen = (): void => {
    if (closing !== undefined) throw new MillraceError('STORE_CLOSED', 'the forwarder was closed')
  }
  return {
    get mode() {
      return modes.mode
    },
    get lastError() {
      return inside.lastError
    },
    onMode: modes.onMode,
    waitFor: modes.waitFor,
    start() {
      assertOpen()
      running ??= options.listen === false ? neverListen(inside) : keepListening(inside)
    },
    subscribeWakes(filter, subscribing) {
      assertOpen()
      return wakes.subscribe(filter, subscribing)
    },
    listen(channel, listening) {
      assertOpen()
      assertChannelName(channel, options.schema)
      const listener = fanOut.listen(channel, listening)
      if (modes.mode === 'polling') fanOut.unavailable(inside.lastError)
      return listener
    },
    onWake: wakes.onRaise,
    ring: (subject) => wakes.raise(subject),
    close: () => (closing ??= end(inside, running)),
  }
}

function createInside(options: ForwarderOptions): Inside {
  const { clock, random } = options.ports
  const inside: Inside = {
    options,
    modes: createModeCell(),
    wakes: createWakeRegistry(clock),
    fanOut: createFanOut(() => reconcile(inside)),
    backoff: createBackoff({ ...defaultBackoff, ...options.backoff }, random),
    stop: new AbortController(),
    session: undefined,
    lastError: undefined,
    interrupted: false,
  }
  return inside
}

function reconcile(inside: Inside): void {
  // A failure of it loses the session, which is all that needs to be known of it.
  inside.session?.reconcile().catch(() => {})
}

async function end(inside: Inside, running: Promise<void> | undefined): Promise<void> {
  inside.stop.abort()
  inside.fanOut.close()
  inside.wakes.close()
  await running
  inside.modes.set('closed')
}

async function neverListen(inside: Inside): Promise<void> {
  becomePolling(inside, new MillraceError('LISTEN_UNSUPPORTED', 'listening is switched off'))
}

async function keepListening(inside: Inside): Promise<void> {
  const { options, stop } = inside
  const listenOnce = createListening(listenSteps(inside))
  while (!stop.signal.aborted) {
    const reason = await listenOnce()
    if (stop.signal.aborted) return
    const unsupported = reason.code === 'LISTEN_UNSUPPORTED'
    if (unsupported) becomePolling(inside, reason)
    else becomeDegraded(inside, reason)
    const waitMs = unsupported ? (options.retestMs ?? 300_000) : inside.backoff.next()
    await sleep(options.ports.clock, waitMs, stop.signal)
  }
}

function listenSteps(inside: Inside): ListenSteps {
  const { options, fanOut, wakes } = inside
  const channel = internalChannel(options.schema)
  return {
    connect: options.connect,
    clock: options.ports.clock,
    channel,
    heartbeatMs: options.heartbeatMs,
    signal: inside.stop.signal,
    wanted: fanOut.channels,
    onStanding() {
      // Before the self-test came through, a LISTEN that stands promises nothing.
      if (inside.modes.mode === 'listening') fanOut.standing()
    },
    onRefused: fanOut.refuse,
    onNotification(from, payload) {
      if (from !== channel) fanOut.deliver(from, payload)
      else if (isWakeSubject(payload)) wakes.raise(payload)
    },
    onSession: (session) => (inside.session = session),
    onListening: () => becomeListening(inside),
    onStood: (ms) => inside.backoff.stood(ms),
  }
}

function becomeListening(inside: Inside): void {
  const { modes, options } = inside
  inside.lastError = undefined
  options.ports.log.info({ schema: options.schema, again: inside.interrupted }, 'Listening for wakes.')
  modes.set('listening')
  if (inside.interrupted) inside.fanOut.reconnected()
  inside.interrupted = false
  // Whoever read before the LISTEN stood may have missed what was written in between.
  inside.wakes.raise('all')
  reconcile(inside)
}

function becomePolling(inside: Inside, reason: MillraceError): void {
  inside.lastError = reason
  inside.interrupted = true
  inside.options.ports.log.warn({ code: reason.code, reason: reason.message }, 'No wakes come here: polling.')
  inside.modes.set('polling')
  inside.fanOut.unavailable(reason)
}

function becomeDegraded(inside: Inside, reason: Error): void {
  const known = translateError(reason)
  inside.lastError = known
  inside.interrupted = true
  const facts = { code: known.code, reason: known.message }
  inside.options.ports.log.warn(facts, 'No listening connection: polling until it stands again.')
  inside.modes.set('degraded')
}
