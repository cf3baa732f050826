import { MillraceError } from '../../errors/millrace-error.ts'
import type { DirectConnection } from '../port.ts'
import { translateError } from '../translate-error.ts'
import { settledWithin } from './bounded.ts'

/** What `pg`'s Client and Neon's have in common. */
export interface SessionClient {
  connect(): Promise<unknown>
  query(text: string, values?: unknown[]): Promise<unknown>
  end(): Promise<void>
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'end', listener: () => void): unknown
  on(event: 'notification', listener: (message: { channel: string; payload?: string }) => void): unknown
}

/** How to open a {@link DirectConnection}. */
export interface SessionOptions {
  client: SessionClient
  /** Cuts the socket without a farewell. */
  destroy: () => void
  signal?: AbortSignal
  /** Called once the session stands; what it returns is called when the session has ended. */
  watch?: () => () => void
}

/** A peer that is gone never answers the farewell. */
const farewellMs = 2000

/**
 * Connects a client and wraps it as a {@link DirectConnection}.
 *
 * @throws DATABASE_UNAVAILABLE, ABORTED
 */
export async function openSession(options: SessionOptions): Promise<DirectConnection> {
  const { client } = options
  const ending = trackEnd(client)
  await connect(options)
  if (options.watch !== undefined) ending.onEnd(options.watch())
  // pg queues on its own, but warns and will stop doing so
  const serially = createQueue()
  return {
    async query(text, parameters = []) {
      const result = await serially(() => client.query(text, parameters))
      return (result as { rows: Record<string, unknown>[] }).rows
    },
    async execute(script) {
      await serially(() => client.query(script))
    },
    onNotification(listener) {
      client.on('notification', (message) => listener(message.channel, message.payload ?? ''))
    },
    onClose: ending.onEnd,
    async close() {
      // after a lost session Neon's `end` never resolves
      if (!ending.ended()) await settledWithin(client.end(), farewellMs)
      options.destroy()
    },
  }
}

async function connect({ client, signal, destroy }: SessionOptions): Promise<void> {
  const aborted = (): MillraceError =>
    new MillraceError('ABORTED', 'the caller aborted the connection', { cause: signal?.reason })
  if (signal?.aborted) throw aborted()
  let rejectAborted: (error: MillraceError) => void = () => {}
  const abort = new Promise<never>((_resolve, reject) => {
    rejectAborted = reject
  })
  const onAbort = (): void => {
    destroy()
    rejectAborted(aborted())
  }
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    await Promise.race([client.connect(), abort])
  } catch (error) {
    destroy()
    throw translateError(error)
  } finally {
    signal?.removeEventListener('abort', onAbort)
  }
}

/** Remembers how the session ended, for listeners that come before or after. */
function trackEnd(client: SessionClient) {
  let ended = false
  let lastError: Error | undefined
  const listeners: ((error?: Error) => void)[] = []
  // unheard, an error event would end the process
  client.on('error', (error) => {
    lastError ??= error
  })
  client.on('end', () => {
    if (ended) return
    ended = true
    for (const listener of listeners.splice(0)) listener(lastError)
  })
  return {
    ended: () => ended,
    onEnd(listener: (error?: Error) => void): void {
      if (ended) queueMicrotask(() => listener(lastError))
      else listeners.push(listener)
    },
  }
}

function createQueue(): <T>(run: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return async (run) => {
    const mine = last.then(run, run)
    last = mine
    try {
      return await mine
    } catch (error) {
      throw translateError(error)
    }
  }
}
