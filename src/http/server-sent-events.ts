import type { Clock } from '../ports.ts'
import type { AppOptions } from './context.ts'

/** Proxies cut connections that are silent for half a minute. */
const heartbeatMs = 15_000

/** Where the messages of an event stream come from: one at a time, null at the end. */
export interface MessageSource {
  next(): Promise<string | null>
}

/** One message; data of several lines stays several lines. */
export function sseMessage({ id, event, data }: { id?: string; event?: string; data: string }): string {
  const lines = data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`)
  return `${event === undefined ? '' : `event: ${event}\n`}${id === undefined ? '' : `id: ${id}\n`}${lines.join('')}\n`
}

/**
 * Answers with server-sent events until the source ends, the client goes or the host shuts down. Heartbeat
 * comments keep the connection alive. The source is asked only when the client has taken what there was.
 *
 * @param open makes the source; what it throws is thrown here, while there is still a status to answer with
 */
export function serverSentEvents(
  { ports, shutdown }: Pick<AppOptions, 'ports' | 'shutdown'>,
  request: Request,
  open: (signal: AbortSignal) => MessageSource,
): Response {
  const headers = { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' }
  // nobody reads the body of the answer to a HEAD, nor ends it
  if (request.method === 'HEAD') return new Response(null, { headers })
  const cancelled = new AbortController()
  const signal = AbortSignal.any([
    cancelled.signal,
    request.signal,
    ...(shutdown === undefined ? [] : [shutdown]),
  ])
  const encoder = new TextEncoder()
  const source = open(signal)
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      // the headers leave with the first bytes
      controller.enqueue(encoder.encode(': open\n\n'))
      beat(ports.clock, signal, () => {
        if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(': still here\n\n'))
      })
    },
    async pull(controller) {
      const message = await source.next().catch((error: unknown) => {
        ports.log.warn({ err: error }, 'an event stream broke off')
        return null
      })
      if (cancelled.signal.aborted) return
      if (message !== null) return controller.enqueue(encoder.encode(message))
      cancelled.abort()
      controller.close()
    },
    cancel: () => cancelled.abort(),
  })
  return new Response(body, { headers })
}

function beat(clock: Clock, signal: AbortSignal, send: () => void): void {
  let timer = clock.setTimeout(function again() {
    send()
    timer = clock.setTimeout(again, heartbeatMs)
  }, heartbeatMs)
  const stop = (): void => clock.clearTimeout(timer)
  if (signal.aborted) stop()
  else signal.addEventListener('abort', stop, { once: true })
}
