import { body, list, named, object, orNull, text, whole, yes, any, time, type Schema } from './shapes.ts'

/** A route as the document describes it. */
export interface Operation {
  summary: string
  /** Query parameters. */
  query?: Record<string, Schema>
  /** The body; a name that is `undefined` in none. */
  body?: Schema
  /** May the body be left out? */
  optional?: boolean
  /** Status and body of the answers that are no problems; null: without a body. */
  answers: Record<number, Schema | null>
  /** Other media types that an answer, or a body, may have. */
  media?: { answer?: string; body?: string }
}

const page = { cursor: text, limit: whole }
const ok = (schema: Schema): Operation['answers'] => ({ 200: schema })
const none: Operation['answers'] = { 204: null }
const empty = body({})
const oneOrMore = (name: string): Schema => ({ oneOf: [named(name), list(named(name))] })
const pageOf = (member: string, items: Schema, next: Schema = text): Schema =>
  object({ [member]: list(items), next: orNull(next) })
const held = list(named('Held'))
const events = { after: whole, limit: whole, type: text }
const token = { token: text }
const report = object({ ready: yes, database: text, migrations: text, 'mode?': text, 'delivery?': text })

/** Every route that the app has, and what it takes and answers. A test holds it and the routes together. */
export const operations: Record<string, Operation> = {
  'GET /healthz': { summary: 'The process answers', answers: ok(object({ status: text })) },
  'GET /readyz': {
    summary: 'So does what it needs',
    answers: {
      200: { ...report, additionalProperties: true },
      503: { ...report, additionalProperties: true },
    },
  },
  'GET /metrics': { summary: 'Prometheus metrics', answers: ok(text), media: { answer: 'text/plain' } },
  'GET /errors/:code': {
    summary: 'What an error code means',
    answers: ok(object({ code: text, status: whole, retryable: yes, title: text })),
  },
  'GET /openapi.json': { summary: 'This document', answers: ok(any) },
  'GET /docs': { summary: 'This document as a page', answers: ok(text), media: { answer: 'text/html' } },
  'GET /v1/streams': {
    summary: 'List streams',
    query: { ...page, prefix: text },
    answers: ok(pageOf('streams', named('Stream'))),
  },
  'GET /v1/streams/:stream': {
    summary: 'Show a stream, its consumers and who holds it back',
    answers: ok(named('Stream')),
  },
  'PATCH /v1/streams/:stream': {
    summary: 'Set what a stream forgets',
    body: named('RetentionBody'),
    answers: ok(named('Retention')),
  },
  'POST /v1/streams/:stream/events': {
    summary: 'Publish one event, or several, all or none',
    body: oneOrMore('NewEvent'),
    answers: { 201: { oneOf: [named('Offset'), object({ offsets: list(whole) })] } },
    media: { body: 'application/x-ndjson' },
  },
  'GET /v1/streams/:stream/events': {
    summary: 'Read, long-poll or follow a stream',
    query: { ...events, wait: whole },
    answers: ok(named('EventPage')),
    media: { answer: 'text/event-stream' },
  },
  'DELETE /v1/streams/:stream/events': {
    summary: 'Delete events up to an offset',
    query: { through: whole },
    answers: ok(object({ deleted: whole })),
  },
  'GET /v1/streams/:stream/consumers/:consumer': {
    summary: "A consumer's saved offset",
    answers: ok(named('Offset')),
  },
  'PUT /v1/streams/:stream/consumers/:consumer': {
    summary: 'Save an offset; never back',
    body: named('OffsetBody'),
    answers: ok(named('Offset')),
  },
  'POST /v1/streams/:stream/consumers/:consumer/seek': {
    summary: 'Move a consumer, back or forth',
    body: named('OffsetBody'),
    answers: ok(named('Offset')),
  },
  'GET /v1/streams/:stream/consumers/:consumer/events': {
    summary: 'Read on from the saved offset',
    query: { limit: whole, type: text },
    answers: ok(named('EventPage')),
  },
  'POST /v1/webhooks': {
    summary: 'Create a webhook; its secret is shown this once',
    body: named('WebhookInput'),
    answers: { 201: named('Webhook') },
  },
  'GET /v1/webhooks': {
    summary: 'List webhooks',
    query: { ...page, stream: text },
    answers: ok(pageOf('webhooks', named('Webhook'))),
  },
  'GET /v1/webhooks/:id': { summary: 'Show a webhook', answers: ok(named('Webhook')) },
  'PATCH /v1/webhooks/:id': {
    summary: 'Change a webhook',
    body: named('WebhookChange'),
    answers: ok(named('Webhook')),
  },
  'DELETE /v1/webhooks/:id': { summary: 'Delete a webhook', answers: none },
  'POST /v1/webhooks/:id/pause': {
    summary: 'Pause it',
    body: empty,
    optional: true,
    answers: ok(named('Webhook')),
  },
  'POST /v1/webhooks/:id/resume': {
    summary: 'Resume it',
    body: empty,
    optional: true,
    answers: ok(named('Webhook')),
  },
  'POST /v1/webhooks/:id/test': {
    summary: 'Send a signed test event now',
    body: empty,
    optional: true,
    answers: ok({ ...object({ delivered: yes, durationMs: whole }), additionalProperties: true }),
  },
  'POST /v1/webhooks/:id/rotate-secret': {
    summary: 'A new secret; the old one signs too for a while',
    body: body({ 'secret?': text, 'overlapMs?': whole }),
    optional: true,
    answers: ok(object({ secret: text, 'publicKey?': text, overlapUntil: time })),
  },
  'POST /v1/webhooks/:id/seek': {
    summary: 'Deliver from an offset or a time on',
    body: body({ 'offset?': whole, 'time?': time }),
    answers: ok(named('Offset')),
  },
  'POST /v1/webhooks/:id/redrive': {
    summary: 'Give dead letters a fresh set of attempts',
    body: body({ 'since?': time }),
    optional: true,
    answers: ok(object({ redriven: whole })),
  },
  'GET /v1/webhooks/:id/deliveries': {
    summary: 'What is retrying, blocked or dead',
    query: { ...page, state: text },
    answers: ok(pageOf('deliveries', named('Delivery'), whole)),
  },
  'POST /v1/webhooks/:id/deliveries/:offset/retry': { summary: 'Try a delivery again now', answers: none },
  'GET /v1/webhooks/:id/attempts': {
    summary: 'The attempt log, newest first',
    query: { ...page, outcome: text, offset: whole },
    answers: ok(pageOf('attempts', named('Attempt'), whole)),
  },
  'POST /v1/channels/:channel': { summary: 'Notify a channel', body: body({ payload: text }), answers: none },
  'GET /v1/channels/:channel': {
    summary: 'Listen to a channel',
    answers: ok(text),
    media: { answer: 'text/event-stream' },
  },
  'GET /v1/queues': { summary: 'List queues', query: page, answers: ok(pageOf('queues', named('Queue'))) },
  'GET /v1/queues/:queue': { summary: 'What is in a queue', answers: ok(named('Queue')) },
  'PATCH /v1/queues/:queue': {
    summary: 'How long finished messages are kept',
    body: body({ retainFinishedMs: orNull(whole) }),
    answers: ok(object({ retainFinishedMs: orNull(whole) })),
  },
  'POST /v1/queues/:queue/messages': {
    summary: 'Send one message, or several, all or none',
    body: oneOrMore('NewMessage'),
    answers: { 201: { oneOf: [named('Sent'), object({ messages: list(named('Sent')) })] } },
  },
  'POST /v1/queues/:queue/claim': {
    summary: 'Take messages to work on',
    body: body({ 'limit?': whole, 'types?': list(text), 'leaseMs?': whole, 'waitMs?': whole }),
    optional: true,
    answers: ok(object({ messages: list(named('ClaimedMessage')), nextDueMs: orNull(whole) })),
  },
  'POST /v1/queues/:queue/ack': { summary: 'Finish messages', body: held, answers: ok(named('Settled')) },
  'POST /v1/queues/:queue/return': {
    summary: 'Give back what was not begun',
    body: held,
    answers: ok(named('Settled')),
  },
  'POST /v1/queues/:queue/retry': {
    summary: 'Have messages tried again',
    body: list(body({ id: whole, lease: text, 'delayMs?': whole, 'error?': text })),
    answers: ok(named('Settled')),
  },
  'POST /v1/queues/:queue/extend': {
    summary: 'Hold messages for longer',
    query: { leaseMs: whole },
    body: held,
    answers: ok(named('Settled')),
  },
  'POST /v1/queues/:queue/fail': {
    summary: 'Give messages up',
    body: list(body({ id: whole, lease: text, reason: text })),
    answers: ok(named('Settled')),
  },
  'GET /v1/queues/:queue/dead': {
    summary: 'List dead letters',
    query: page,
    answers: ok(pageOf('dead', named('DeadLetter'), whole)),
  },
  'DELETE /v1/queues/:queue/dead': {
    summary: 'Delete dead letters',
    query: { id: text },
    answers: ok(object({ deleted: whole })),
  },
  'POST /v1/queues/:queue/redrive': {
    summary: 'Send dead letters again',
    body: body({ 'ids?': list(whole), 'limit?': whole }),
    optional: true,
    answers: ok(object({ redriven: list(whole) })),
  },
  'GET /v1/topics': {
    summary: 'List topics',
    query: page,
    answers: ok(pageOf('topics', object({ topic: text, queues: whole }))),
  },
  'GET /v1/topics/:topic': {
    summary: 'The queues that are bound to a topic',
    query: page,
    answers: ok(object({ topic: text, queues: list(text), next: orNull(text) })),
  },
  'POST /v1/topics/:topic/messages': {
    summary: 'Send to every bound queue, all or none',
    body: oneOrMore('NewMessage'),
    answers: { 201: object({ queues: whole, sent: whole }) },
  },
  'PUT /v1/topics/:topic/queues/:queue': {
    summary: 'Bind a queue: 201, or 200 when it was bound',
    answers: { 200: object({ topic: text, queue: text }), 201: object({ topic: text, queue: text }) },
  },
  'DELETE /v1/topics/:topic/queues/:queue': { summary: 'End a binding', answers: none },
  'POST /v1/locks/:name': {
    summary: 'Take a lock',
    body: body({ ttlMs: whole, 'waitMs?': whole }),
    answers: ok(named('Lock')),
  },
  'PUT /v1/locks/:name': {
    summary: 'Renew it',
    body: body({ ...token, ttlMs: whole }),
    answers: ok(object({ until: time })),
  },
  'DELETE /v1/locks/:name': { summary: 'Give it back', body: body(token), answers: none },
  'GET /v1/locks/:name': { summary: 'Look at a lock', answers: ok(named('LockState')) },
  'GET /v1/schedules': {
    summary: 'List schedules',
    query: page,
    answers: ok(pageOf('schedules', named('Schedule'))),
  },
  'PUT /v1/schedules/:name': {
    summary: 'Create a schedule, or change it',
    body: named('ScheduleInput'),
    answers: ok(named('Schedule')),
  },
  'GET /v1/schedules/:name': { summary: 'Show a schedule', answers: ok(named('Schedule')) },
  'DELETE /v1/schedules/:name': { summary: 'Delete a schedule', answers: none },
  'POST /v1/schedules/:name/pause': {
    summary: 'Pause it',
    body: empty,
    optional: true,
    answers: ok(named('Schedule')),
  },
  'POST /v1/schedules/:name/resume': {
    summary: 'Resume it',
    body: empty,
    optional: true,
    answers: ok(named('Schedule')),
  },
  'POST /v1/schedules/:name/run': {
    summary: 'Send its message now',
    body: empty,
    optional: true,
    answers: ok(object({ dueAt: time, number: whole })),
  },
  'POST /v1/keys': {
    summary: 'Create an API key; it is shown this once',
    body: named('KeyInput'),
    answers: { 201: named('Key') },
  },
  'GET /v1/keys': { summary: 'List API keys', query: page, answers: ok(pageOf('keys', named('Key'))) },
  'DELETE /v1/keys/:id': { summary: 'Revoke an API key', answers: none },
}
