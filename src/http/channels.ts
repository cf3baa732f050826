import type { Hono } from 'hono'
import * as v from 'valibot'
import { MillraceError } from '../errors/millrace-error.ts'
import { parseShape } from '../json/shape.ts'
import { readJsonObject } from './body.ts'
import type { AppOptions, ChannelPort, ChannelValue } from './context.ts'
import { queryOf } from './query.ts'
import { resource, type Handler } from './resource.ts'
import { serverSentEvents, sseMessage } from './server-sent-events.ts'

const path = '/v1/channels/:channel'

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

/** `reconnected` and `lagged` are events of their own names, notifications are plain messages. */
function listen(options: AppOptions): Handler<typeof path> {
  return (c) => {
    queryOf(c.req.raw, [])
    const { listen: open } = channelsOf(options)
    if (open === undefined)
      throw new MillraceError('LISTEN_UNSUPPORTED', 'this host holds no LISTEN connection')
    const channel = c.req.param('channel')
    return serverSentEvents(options, c.req.raw.signal, (signal) => {
      const values = open(channel, { signal })[Symbol.asyncIterator]()
      return {
        async next() {
          const { done, value } = await values.next()
          return done ? null : toMessage(value)
        },
      }
    })
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
