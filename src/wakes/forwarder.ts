import { translateError } from '../db/translate-error.ts'
import { MillraceError } from '../errors/millrace-error.ts'
import type { Ports } from '../ports.ts'
import { createAgenda, type Agenda, type Seat } from './agenda.ts'
import { createBackoff, defaultBackoff, type Backoff, type BackoffOptions } from './backoff.ts'
import { assertChannelName, internalChannel } from './channel-name.ts'
import { createFanOut, type FanOut, type Listener, type ListenOptions } from './fan-out.ts'
import { createListening, type ListenSteps } from './listen.ts'
import { createModeCell, type ModeCell, type WakeModes } from './modes.ts'
import type { Connect } from './open-connection.ts'
import type { Session } from './session.ts'
import { createSleepCycle, type SleepCycle, type SleepOptions } from './sleep-cycle.ts'
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
  /** Lets a database that nobody uses sleep. Default: the connection is held. */
  sleep?: SleepOptions
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
  /**
   * Raises the flag of whom a subject concerns, for word that came by another way than LISTEN. A sleeping
   * forwarder comes back first, and then raises everyone's.
   */
  ring(subject: WakeSubject | 'all'): void
  /**
   * It is back from a sleep of its own accord, without word of anything: an `all` now is no reason to come back
   * again for a look.
   */
  readonly unasked: boolean
  /** Where the loops of the process say what they are at, so that the forwarder knows when it may sleep. */
  readonly agenda: Agenda
  /** Why the mode is not `listening`; undefined while it sleeps because there is nothing to do. */
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
  agenda: Agenda
  /** Undefined: the connection is held. */
  cycle: SleepCycle | undefined
  /** Taken while user channels are listened to. */
  channels: Seat | undefined
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
    get unasked() {
      return inside.cycle?.unasked === true
    },
    agenda: inside.agenda,
    onMode: modes.onMode,
    waitFor: modes.waitFor,
    start() {
      assertOpen()
      running ??= inside.cycle === undefined ? keepListening(inside) : sleepBetween(inside, inside.cycle)
    },
    subscribeWakes(filter, subscribing) {
      assertOpen()
      const wake = wakes.subscribe(filter, subscribing)
      keepAwake(inside, wake)
      return wake
    },
    listen(channel, listening) {
      assertOpen()
      assertChannelName(channel, options.schema)
      const listener = fanOut.listen(channel, listening)
      if (modes.mode === 'polling') fanOut.unavailable(inside.lastError)
      return listener
    },
    onWake: wakes.onRaise,
    ring(subject) {
      inside.cycle?.stir()
      if (modes.mode !== 'sleeping') raise(inside, subject)
    },
    close: () => (closing ??= end(inside, running)),
  }
}

function createInside(options: ForwarderOptions): Inside {
  const { clock } = options.ports
  const agenda = createAgenda(clock)
  const inside: Inside = {
    options,
    modes: createModeCell(),
    wakes: createWakeRegistry(clock),
    fanOut: createFanOut(() => onListeners(inside)),
    backoff: freshBackoff(options),
    agenda,
    cycle:
      options.sleep &&
      createSleepCycle({ ...options.sleep, clock, agenda, onSleep: () => becomeSleeping(inside) }),
    channels: undefined,
    stop: new AbortController(),
    session: undefined,
    lastError: undefined,
    interrupted: false,
  }
  return inside
}

/** Who waits for a database that has just been woken does not want to wait for two seconds more. */
const wakingBackoff: BackoffOptions = { ...defaultBackoff, maxMs: 1_000 }

function freshBackoff({ sleep: sleeping, backoff, ports }: ForwarderOptions): Backoff {
  return createBackoff({ ...(sleeping ? wakingBackoff : defaultBackoff), ...backoff }, ports.random)
}

function raise({ agenda, wakes }: Inside, subject: WakeSubject | 'all'): void {
  agenda.active()
  wakes.raise(subject)
}

/** Who subscribes wants wakes as they come: no sleep until it is over. */
function keepAwake({ agenda, cycle }: Inside, wake: WakeSignal): void {
  if (cycle === undefined || wake.closed) return
  const seat = agenda.join('reader')
  const off = wake.onRaise(() => {
    if (!wake.closed) return
    off()
    seat.leave()
  })
  cycle.stir()
}

/** As for subscribers: while a channel has a listener, the connection is needed. */
function onListeners(inside: Inside): void {
  const { cycle, agenda, fanOut } = inside
  if (cycle !== undefined) {
    const wanted = fanOut.channels().length > 0
    if (!wanted) inside.channels?.leave()
    else if (inside.channels === undefined) cycle.stir()
    inside.channels = wanted ? (inside.channels ?? agenda.join('reader')) : undefined
  }
  reconcile(inside)
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

/** Turns of being awake and asleep, each with its own connection. */
async function sleepBetween(inside: Inside, cycle: SleepCycle): Promise<void> {
  const { stop } = inside
  const listenOnce = createListening(listenSteps(inside))
  while (!stop.signal.aborted) {
    inside.backoff = freshBackoff(inside.options)
    await keepListening(inside, listenOnce, cycle.wakeUp(stop.signal))
    await cycle.nap(stop.signal)
  }
}

async function keepListening(
  inside: Inside,
  listenOnce = createListening(listenSteps(inside)),
  signal = inside.stop.signal,
): Promise<void> {
  const { options } = inside
  if (options.listen === false) {
    becomePolling(inside, new MillraceError('LISTEN_UNSUPPORTED', 'listening is switched off'))
    return sleep(options.ports.clock, Infinity, signal)
  }
  while (!signal.aborted) {
    const reason = await listenOnce(signal)
    if (signal.aborted) return
    const unsupported = reason.code === 'LISTEN_UNSUPPORTED'
    if (unsupported) becomePolling(inside, reason)
    else becomeDegraded(inside, reason)
    const waitMs = unsupported ? (options.retestMs ?? 300_000) : inside.backoff.next()
    await sleep(options.ports.clock, waitMs, signal)
  }
}

function listenSteps(inside: Inside): ListenSteps {
  const { options, fanOut } = inside
  const channel = internalChannel(options.schema)
  return {
    connect: options.connect,
    clock: options.ports.clock,
    channel,
    heartbeatMs: options.heartbeatMs,
    wanted: fanOut.channels,
    onStanding() {
      // Before the self-test came through, a LISTEN that stands promises nothing.
      if (inside.modes.mode === 'listening') fanOut.standing()
    },
    onRefused: fanOut.refuse,
    onNotification(from, payload) {
      if (from !== channel) fanOut.deliver(from, payload)
      else if (isWakeSubject(payload)) raise(inside, payload)
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
  inside.cycle?.stood()
  modes.set('listening')
  if (inside.interrupted) inside.fanOut.reconnected()
  inside.interrupted = false
  // Whoever read before the LISTEN stood may have missed what was written in between.
  inside.wakes.raise('all')
  reconcile(inside)
}

function becomePolling(inside: Inside, reason: MillraceError): void {
  const slept = inside.modes.mode === 'sleeping'
  inside.lastError = reason
  inside.interrupted = true
  inside.options.ports.log.warn({ code: reason.code, reason: reason.message }, 'No wakes come here: polling.')
  inside.cycle?.stood()
  inside.modes.set('polling')
  if (slept) inside.wakes.raise('all')
  inside.fanOut.unavailable(reason)
}

function becomeDegraded(inside: Inside, reason: Error): void {
  const known = translateError(reason)
  const { modes, options } = inside
  inside.lastError = known
  inside.interrupted = true
  const facts = { code: known.code, reason: known.message }
  // a database that does not wake up at once is not to be polled meanwhile
  if (modes.mode === 'sleeping') options.ports.log.warn(facts, 'The database does not answer yet.')
  inside.cycle?.failed()
  if (modes.mode === 'sleeping') return
  options.ports.log.warn(facts, 'No listening connection: polling until it stands again.')
  modes.set('degraded')
}

function becomeSleeping(inside: Inside): void {
  const { modes, options, agenda } = inside
  const well = modes.mode === 'listening' || modes.mode === 'polling'
  // after a turn in vain it stays known why
  if (well) inside.lastError = undefined
  inside.interrupted = true
  const dueInMs = agenda.nextDueAt === Infinity ? null : agenda.nextDueAt - options.ports.clock.now()
  if (well) options.ports.log.info({ dueInMs }, 'Nothing to do: letting the database sleep.')
  else options.ports.log.warn({}, 'The database does not answer: leaving it alone for a while.')
  modes.set('sleeping')
}
