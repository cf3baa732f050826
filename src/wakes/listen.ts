import type { DirectConnection } from '../db/port.ts'
import { translateError } from '../db/translate-error.ts'
import { MillraceError } from '../errors/millrace-error.ts'
import type { Clock } from '../ports.ts'
import { quotedName } from '../db/quoted-name.ts'
import { openConnection, type Connect } from './open-connection.ts'
import { createSelfTest, type SelfTest } from './self-test.ts'
import { answerMs, createSession, type Session, type SessionOptions } from './session.ts'
import { within } from '../within.ts'

/** What {@link createListening} needs, and whom it tells. */
export interface ListenSteps extends Omit<SessionOptions, 'signal'> {
  connect: Connect
  clock: Clock
  /** The internal channel. */
  channel: string
  /** A session on which user channels may be listened to; undefined once it is gone. */
  onSession: (session: Session | undefined) => void
  /** All LISTENs stand, and the self-test came through. */
  onListening: () => void
  /** How long the connection that is lost now stood. */
  onStood: (ms: number) => void
}

/** For one connection. */
type Steps = ListenSteps & Pick<SessionOptions, 'signal'>

/**
 * Returns the function that makes one connection, listens on it until it is lost or the signal aborts, and
 * resolves with the reason; it never rejects. LISTEN_UNSUPPORTED means that another attempt would end alike.
 */
export function createListening(given: ListenSteps): (signal: AbortSignal) => Promise<MillraceError> {
  let proven = false
  return async (signal) => {
    const steps: Steps = { ...given, signal }
    try {
      const connection = await openConnection(steps.connect, steps.clock, steps.signal)
      const selfTest = createSelfTest(steps.clock)
      const session = createSession(connection, { ...steps, onNotification: watched(steps, selfTest) })
      try {
        await prepare(steps, connection, { session, selfTest, proven })
        proven = true
        return await stand(steps, session)
      } finally {
        steps.onSession(undefined)
        await session.close()
      }
    } catch (error) {
      return translateError(error)
    }
  }
}

function watched(steps: Steps, selfTest: SelfTest): SessionOptions['onNotification'] {
  return (channel, payload) => {
    if (channel === steps.channel) selfTest.seen(payload)
    steps.onNotification(channel, payload)
  }
}

async function prepare(
  steps: Steps,
  connection: DirectConnection,
  given: { session: Session; selfTest: SelfTest; proven: boolean },
): Promise<void> {
  const { session, selfTest, proven } = given
  await listenInternally(steps, connection, session)
  steps.onSession(session)
  await session.reconcile()
  const own = (nonce: string): Promise<unknown> =>
    session.run('the self-test', () => sendOn(connection, steps.channel, nonce))
  await selfTest.run(session, proven ? own : (nonce) => sendFromOutside(steps, nonce))
  // For who came during the self-test.
  await session.reconcile()
}

/** Alone and first, so that a server that takes no LISTEN at all (a standby) is told from a bad channel. */
async function listenInternally(steps: Steps, connection: DirectConnection, session: Session): Promise<void> {
  try {
    await session.run('LISTEN', () => connection.execute(`LISTEN ${quotedName(steps.channel)}`))
  } catch (error) {
    const known = translateError(error)
    if (known.retryable || known.code === 'ABORTED') throw known
    throw new MillraceError('LISTEN_UNSUPPORTED', `the database refuses LISTEN: ${known.message}`, {
      cause: known,
    })
  }
}

async function sendOn(connection: DirectConnection, channel: string, nonce: string): Promise<void> {
  await connection.query('select pg_catalog.pg_notify($1::text, $2::text)', [channel, nonce])
}

/**
 * From a second session, until the address is proven: behind a transaction-mode pooler a session's own
 * notification comes back with the answer of the statement that sent it, while nobody else's ever comes.
 */
async function sendFromOutside(steps: Steps, nonce: string): Promise<void> {
  const outside = await openConnection(steps.connect, steps.clock, steps.signal)
  try {
    await within(
      steps.clock,
      { ms: answerMs, what: 'the self-test', signal: steps.signal },
      sendOn(outside, steps.channel, nonce),
    )
  } finally {
    await outside.close()
  }
}

async function stand(steps: Steps, session: Session): Promise<MillraceError> {
  steps.onListening()
  const since = steps.clock.now()
  const reason = await session.lost
  steps.onStood(steps.clock.now() - since)
  return reason === undefined
    ? new MillraceError('DATABASE_UNAVAILABLE', 'the listening connection ended')
    : translateError(reason)
}
