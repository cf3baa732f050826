import type { DirectConnection } from '../db/port.ts'
import { translateError } from '../db/translate-error.ts'
import type { Clock } from '../ports.ts'
import { quotedName } from '../db/quoted-name.ts'
import { createDeferred } from './deferred.ts'
import { within } from '../within.ts'

/** How long the database may take over a LISTEN or a heartbeat before the connection counts as lost. */
export const answerMs = 10_000

/** What a {@link Session} needs. */
export interface SessionOptions {
  clock: Clock
  /** The channels wanted now; asked again on each `reconcile`. */
  wanted: () => string[]
  onNotification: (channel: string, payload: string) => void
  /** Every channel wanted now is listened to. */
  onStanding: () => void
  /** The database refuses a channel, though the connection is well; it must not be wanted any more. */
  onRefused: (channel: string, error: unknown) => void
  /** Every so often a statement proves that the server answers; absent, no SQL is spent on that. */
  heartbeatMs?: number
  /** Its abort ends the session. */
  signal: AbortSignal
}

/** One connection that listens: keeps what is listened to equal to what is wanted, until it is lost. */
export interface Session {
  /** LISTENs and UNLISTENs until what stands is what is wanted; a failure to do so loses the session. */
  reconcile(): Promise<void>
  /** Runs a statement in turn; a failure without an answer loses the session. */
  run<T>(what: string, statement: () => Promise<T>): Promise<T>
  /** Resolves with the reason, once, when the session is no more. Never rejects. */
  readonly lost: Promise<Error | undefined>
  close(): Promise<void>
}

export function createSession(connection: DirectConnection, options: SessionOptions): Session {
  const lost = createDeferred<Error | undefined>()
  const gone = new AbortController()
  const lose = (error?: Error): void => {
    gone.abort()
    lost.resolve(error)
  }
  const end = (): void => lose()
  options.signal.addEventListener('abort', end)
  if (options.signal.aborted) end()
  // Before the first statement: a notification may come with its answer.
  connection.onNotification(options.onNotification)
  connection.onClose(lose)

  const run = createQueue(options.clock, gone.signal, lose)
  const stopHeartbeat = startHeartbeat(options.clock, options.heartbeatMs, () =>
    run('the heartbeat', () => connection.query('select 1')),
  )
  return {
    reconcile: createReconciler({ connection, options, standing: new Set(), run, lose }),
    run,
    lost: lost.promise,
    async close() {
      stopHeartbeat()
      options.signal.removeEventListener('abort', end)
      lose()
      await connection.close()
    },
  }
}

/** Statements one after the other, each bounded: what gets no answer has lost the session. */
function createQueue(clock: Clock, signal: AbortSignal, lose: (error: Error) => void): Session['run'] {
  let tail: Promise<unknown> = Promise.resolve()
  return (what, statement) => {
    const result = tail.then(() => within(clock, { ms: answerMs, what, signal }, statement()))
    tail = result.catch(() => {})
    return result.catch((error: unknown) => {
      const known = translateError(error)
      if (known.code === 'DATABASE_UNAVAILABLE') lose(known)
      throw known
    })
  }
}

interface Reconciling {
  connection: DirectConnection
  options: SessionOptions
  standing: Set<string>
  run: Session['run']
  lose: (error: Error) => void
}

/** At most one pass runs at a time; a call during one joins it, and it sees what changed meanwhile. */
function createReconciler(given: Reconciling): () => Promise<void> {
  let running: Promise<void> | undefined
  const pass = async (): Promise<void> => {
    try {
      let steps = difference(given)
      while (steps.length > 0) {
        await apply(given, steps)
        steps = difference(given)
      }
      given.options.onStanding()
    } catch (error) {
      given.lose(translateError(error))
      throw error
    } finally {
      running = undefined
    }
  }
  // Begun a moment later, so that a pass with nothing to do does not end before `running` is set.
  return () => (running ??= Promise.resolve().then(pass))
}

interface Step {
  channel: string
  verb: 'LISTEN' | 'UNLISTEN'
}

function difference({ options, standing }: Reconciling): Step[] {
  const wanted = new Set(options.wanted())
  const added = [...wanted].filter((channel) => !standing.has(channel))
  const removed = [...standing].filter((channel) => !wanted.has(channel))
  return [
    ...added.map((channel): Step => ({ channel, verb: 'LISTEN' })),
    ...removed.map((channel): Step => ({ channel, verb: 'UNLISTEN' })),
  ]
}

/** All steps in one round trip; when the database refuses, one by one, to find out which. */
async function apply(given: Reconciling, steps: Step[]): Promise<void> {
  const script = steps.map(({ verb, channel }) => `${verb} ${quotedName(channel)}`).join('; ')
  try {
    await given.run('LISTEN', () => given.connection.execute(script))
  } catch (error) {
    const known = translateError(error)
    if (known.retryable || known.code === 'ABORTED') throw known
    const [first, ...rest] = steps
    if (first !== undefined && rest.length === 0) return refuse(given, first, known)
    for (const step of steps) await apply(given, [step])
    return
  }
  for (const { verb, channel } of steps) {
    if (verb === 'UNLISTEN') given.standing.delete(channel)
    else given.standing.add(channel)
  }
}

/** An encoding without the channel's letters, for example. */
function refuse({ options }: Reconciling, step: Step, error: unknown): void {
  if (step.verb === 'UNLISTEN') throw error
  options.onRefused(step.channel, error)
}

function startHeartbeat(clock: Clock, everyMs: number | undefined, beat: () => Promise<unknown>): () => void {
  if (everyMs === undefined) return () => {}
  let stopped = false
  let timer = clock.setTimeout(tick, everyMs)
  function tick(): void {
    // a beat that fails has lost the session already, which stops the heart
    beat().then(
      () => {
        if (!stopped) timer = clock.setTimeout(tick, everyMs as number)
      },
      () => {},
    )
  }
  return () => {
    stopped = true
    clock.clearTimeout(timer)
  }
}
