import { isMillraceError, MillraceError } from '../errors/millrace-error.ts'
import type { Clock } from '../ports.ts'
import { createDeferred } from './deferred.ts'
import type { Session } from './session.ts'
import { within } from '../within.ts'

/** A notification takes a few milliseconds; this is for a server under heavy load. */
export const selfTestMs = 5000

/** Finds out whether notifications arrive at all. */
export interface SelfTest {
  /** To be shown each payload of the internal channel. */
  seen(payload: string): void
  /**
   * Sends a nonce and waits for it.
   *
   * @throws LISTEN_UNSUPPORTED when it does not come within {@link selfTestMs}, though the session lives
   */
  run(session: Session, send: (nonce: string) => Promise<unknown>): Promise<void>
}

export function createSelfTest(clock: Clock): SelfTest {
  const nonce = `t${crypto.randomUUID()}`
  const arrived = createDeferred<void>()
  return {
    seen(payload) {
      if (payload === nonce) arrived.resolve()
    },
    async run(session, send) {
      const gone = new AbortController()
      void session.lost.then(() => gone.abort())
      await send(nonce)
      const bounds = { ms: selfTestMs, what: 'the self-test', signal: gone.signal }
      try {
        await within(clock, bounds, arrived.promise)
      } catch (error) {
        if (isMillraceError(error) && error.code === 'ABORTED') throw (await session.lost) ?? error
        throw new MillraceError(
          'LISTEN_UNSUPPORTED',
          'LISTEN is accepted, but no notification comes through: is this a transaction-mode pooler?',
        )
      }
    },
  }
}
