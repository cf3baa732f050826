import type { SQL } from 'drizzle-orm'
import { PgDialect } from 'drizzle-orm/pg-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import type { Db } from '../../src/db/port.ts'
import { createApp } from '../../src/http/app.ts'
import { workRoutes } from '../../src/http/work-routes.ts'
import { liveParts } from '../../src/node/live-parts.ts'
import { defaultPoll } from '../../src/node/pace.ts'
import { createSystemPorts } from '../../src/system-ports.ts'
import { createForwarder, type Forwarder } from '../../src/wakes/forwarder.ts'
import { createDrivenClock } from '../support/clock.ts'
import type { TestDatabase } from '../support/database.ts'
import { createMigratedDatabase } from '../support/migrated.ts'
import { expectProblem } from './suite/answers.ts'
import { createApi, freshName, type Api } from './suite/target.ts'

const rootKey = 'a-root-key-for-these-tests'
const clock = createDrivenClock()
let database: TestDatabase
let db: Db
let forwarder: Forwarder
let api: Api

let whenClaimed = (): void => {}

/** Calls `whenClaimed` between a claim and its answer. */
function tellingOfClaims(real: Db): Db {
  const { drizzle } = real
  async function execute(statement: SQL): Promise<unknown> {
    const answer = await drizzle.execute(statement)
    if (new PgDialect().sqlToQuery(statement).sql.includes('claim_messages')) whenClaimed()
    return answer
  }
  const telling = new Proxy(drizzle, {
    get: (target, property) => (property === 'execute' ? execute : Reflect.get(target, property, target)),
  })
  return Object.assign(Object.create(real) as Db, { drizzle: telling })
}

beforeAll(async () => {
  database = await createMigratedDatabase()
  db = createNodePostgresDb({ url: database.url })
  const real = createSystemPorts()
  forwarder = createForwarder({
    connect: (signal) => db.connectDirect({ signal }),
    schema: 'millrace',
    ports: real,
  })
  forwarder.start()
  await forwarder.waitFor('listening')
  const ports = { ...real, clock }
  const app = createApp({
    db: tellingOfClaims(db),
    rootKey,
    ports,
    targetPolicy: {},
    sealer: null,
    workRoutes,
    ...liveParts(db, { forwarder }, { ports, poll: defaultPoll }),
  })
  const target = { fetch: async (request: Request) => app.fetch(request), db, rootKey, close: async () => {} }
  api = createApi(() => target)
})
afterAll(async () => {
  await forwarder.close()
  await db.close()
  await database.drop()
})

/** Reads a body of server-sent events message by message. */
function messagesOf(response: Response): { next(): Promise<string>; leave(): Promise<void> } {
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  let text = ''
  return {
    async next() {
      while (!text.includes('\n\n')) {
        const { done, value } = await reader.read()
        if (done) return 'the end'
        text += decoder.decode(value, { stream: true })
      }
      const end = text.indexOf('\n\n')
      const message = text.slice(0, end)
      text = text.slice(end + 2)
      return message
    },
    leave: () => reader.cancel(),
  }
}

const sse = { accept: 'text/event-stream' }

describe('server-sent events', () => {
  it('are one message an event, follow the stream, and resume after Last-Event-ID', async () => {
    const path = `/v1/streams/${freshName()}/events`
    const publish = async (data: unknown) =>
      ((await (await api.call('POST', path, { type: 't', data })).json()) as { offset: number }).offset
    const first = await publish('one\ntwo')
    const response = await api.call('GET', path, undefined, sse)
    expect(response.headers.get('content-type')).toContain('text/event-stream')
    const messages = messagesOf(response)
    expect(await messages.next()).toBe(': open')
    expect(await messages.next()).toMatch(
      new RegExp(`^id: ${first}\ndata: {"offset":${first},.*"one\\\\ntwo".*}$`),
    )
    const second = await publish(2)
    expect(await messages.next()).toContain(`id: ${second}\n`)
    await messages.leave()
    const resumed = messagesOf(
      await api.call('GET', `${path}?after=0`, undefined, { ...sse, 'last-event-id': `${first}` }),
    )
    await resumed.next()
    expect(await resumed.next()).toContain(`id: ${second}\n`)
    await resumed.leave()
  })

  it('say every 15 s that they are still there, until the client leaves', async () => {
    const idle = clock.pending()
    const messages = messagesOf(await api.call('GET', `/v1/streams/${freshName()}/events`, undefined, sse))
    expect(await messages.next()).toBe(': open')
    for (let beat = 0; beat < 2; beat++) {
      const next = messages.next()
      await clock.advance(15_000)
      expect(await next).toBe(': still here')
    }
    await messages.leave()
    await expect.poll(() => clock.pending()).toBe(idle)
  })

  it('answer a bad position with a status, and a HEAD with no timer left', async () => {
    const path = `/v1/streams/${freshName()}/events`
    await expectProblem(
      await api.call('GET', `${path}?after=900000000000`, undefined, sse),
      'OFFSET_AHEAD',
      'after',
    )
    const bad = api.call('GET', path, undefined, { ...sse, 'last-event-id': 'x' })
    await expectProblem(await bad, 'INVALID_INPUT', 'Last-Event-ID')
    const idle = clock.pending()
    expect((await api.call('HEAD', path, undefined, sse)).status).toBe(200)
    expect(clock.pending()).toBe(idle)
  })
})

describe('a long poll', () => {
  it('is woken by a publish, and ends when its client goes, with no timer left', async () => {
    const path = `/v1/streams/${freshName()}/events`
    const idle = clock.pending()
    const waiting = api.call('GET', `${path}?wait=30`)
    await clock.waitForTimers(idle + 1)
    await api.call('POST', path, { type: 't', data: 1 })
    expect(((await (await waiting).json()) as { events: unknown[] }).events).toHaveLength(1)
    const gone = new AbortController()
    const left = api.raw(`${path}?wait=30&type=other`, {
      headers: { authorization: `Bearer ${rootKey}` },
      signal: gone.signal,
    })
    await clock.waitForTimers(idle + 1)
    gone.abort()
    expect(((await (await left).json()) as { events: unknown[] }).events).toEqual([])
    expect(clock.pending()).toBe(idle)
  })
})

describe('a claim that waits', () => {
  const post = (path: string, body: object, signal: AbortSignal): Promise<Response> =>
    api.raw(path, {
      method: 'POST',
      headers: { authorization: `Bearer ${rootKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal,
    })

  it('is woken by a send, and ends when its client goes, with no timer left', async () => {
    const path = `/v1/queues/${freshName('q')}`
    const idle = clock.pending()
    const waiting = api.call('POST', `${path}/claim`, { waitMs: 30_000 })
    await clock.waitForTimers(idle + 1)
    await api.call('POST', `${path}/messages`, { data: 1 })
    expect(((await (await waiting).json()) as { messages: unknown[] }).messages).toHaveLength(1)
    const gone = new AbortController()
    const left = post(`${path}/claim`, { waitMs: 30_000, types: ['other'] }, gone.signal)
    await clock.waitForTimers(idle + 1)
    gone.abort()
    expect(((await (await left).json()) as { messages: unknown[] }).messages).toEqual([])
    expect(clock.pending()).toBe(idle)
  })

  it('Q2: gives back what it claimed for a client that has gone meanwhile', async () => {
    const path = `/v1/queues/${freshName('q')}`
    await api.call('POST', `${path}/messages`, { data: 1, maxAttempts: 1 })
    const gone = new AbortController()
    whenClaimed = () => gone.abort()
    await (await post(`${path}/claim`, { waitMs: 30_000 }, gone.signal)).text()
    whenClaimed = () => {}
    const next = await api.call('POST', `${path}/claim`)
    expect(await next.json()).toMatchObject({ messages: [{ data: 1, attempt: 1 }] })
  })
})

describe('a channel', () => {
  it('brings what is posted to it from the moment it answers, and refuses a bad name', async () => {
    const path = `/v1/channels/${freshName('c')}`
    const messages = messagesOf(await api.call('GET', path))
    expect((await api.call('POST', path, { payload: 'hello\n' })).status).toBe(204)
    expect(await messages.next()).toBe(': open')
    expect(await messages.next()).toBe('data: {"payload":"hello\\n"}')
    await messages.leave()
    await expectProblem(await api.call('GET', `/v1/channels/${'c'.repeat(64)}`), 'INVALID_NAME')
    await expectProblem(await api.call('POST', path, { payload: 'x'.repeat(8000) }), 'PAYLOAD_TOO_LARGE')
  })
})
