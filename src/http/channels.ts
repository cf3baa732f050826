import type { Hono } from 'hono'
import * as v from 'valibot'
import { MillraceError } from '../errors/millrace-error.ts'
import { parseShape } from '../json/shape.ts'
import type { Clock } from '../ports.ts'
import { readJsonObject } from './body.ts'
import type { AppOptions, ChannelPort, ChannelValue } from './context.ts'
import { queryOf } from './query.ts'
import { resource, type Handler } from './resource.ts'
import { serverSentEvents, sseMessage, type MessageSource } from './server-sent-events.ts'

const path = '/v1/channels/:channel'

/** While the LISTEN connection is lost nobody is kept waiting for an answer any longer than this. */
const readyMs = 5_000

const message = v.strictObject({ payload: v.string() })

/** `POST /v1/channels/{channel}` notifies; `GET` listens, as server-sent events. */
export function channelRoutes(app: Hono, options: AppOptions): void {
  resource(app, path, { POST: notify(options), GET: listen(options) })
}

function notify(options: AppOptions): Handler<typeof path> {
  return async (c) => {
    queryOf(c.req.raw, [])
    const { payload } = parseShape(message, await readJsonObject(c.req.raw), 'body')
    await channelsOf(options).notify(c.req.param('channel'), payload)
    return c.body(null, 204)
  }
}

/**
 * `reconnected` and `lagged` are events of their own names, notifications are plain messages. The answer
 * begins once the LISTEN stands, so that what is sent after it arrives.
 */
function listen(options: AppOptions): Handler<typeof path> {
  return async (c) => {
    queryOf(c.req.raw, [])
    const { listen: open } = channelsOf(options)
    if (open === undefined)
      throw new MillraceError('LISTEN_UNSUPPORTED', 'this host holds no LISTEN connection')
    const left = new AbortController()
    const signal = AbortSignal.any([left.signal, c.req.raw.signal])
    const listener = open(c.req.param('channel'), { signal })
    try {
      await standing(listener.ready, options.ports.clock)
      return serverSentEvents(options, c.req.raw, (ended) => toSource(listener, ended, left))
    } catch (error) {
      left.abort()
      throw error
    } finally {
      if (c.req.method === 'HEAD') left.abort()
    }
  }
}

/** Rejects as `ready` does; where the connection is just being made again, `reconnected` tells when it stands. */
function standing(ready: Promise<void>, clock: Clock): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimeout(resolve, readyMs)
    ready.then(resolve, reject).finally(() => clock.clearTimeout(timer))
  })
}

function toSource(
  listener: AsyncIterable<ChannelValue>,
  ended: AbortSignal,
  left: AbortController,
): MessageSource {
  const values = listener[Symbol.asyncIterator]()
  if (ended.aborted) left.abort()
  else ended.addEventListener('abort', () => left.abort(), { once: true })
  return {
    async next() {
      const { done, value } = await values.next()
      return done ? null : toMessage(value)
    },
  }
}

function toMessage(value: ChannelValue): string {
  if (value.kind === 'notification') return sseMessage({ data: JSON.stringify({ payload: value.payload }) })
  const { kind, ...facts } = value
  return sseMessage({ event: kind, data: JSON.stringify(facts) })
}

function channelsOf({ channels }: AppOptions): ChannelPort {
  if (channels === undefined) throw new MillraceError('NOT_FOUND', 'this host has no channels')
  return channels
}
