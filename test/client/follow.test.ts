import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClient, type Client } from '../../src/client/client.ts'
import { follow } from '../../src/client/follow.ts'
import type { EventPage, ReadEvent, ReadOptions } from '../../src/client/types.ts'
import { MillraceError } from '../../src/errors/millrace-error.ts'
import { publishEvents } from '../../src/streams/publish-events.ts'
import { startApiServer, type ApiServer } from '../support/api-server.ts'

let server: ApiServer
let client: Client

beforeAll(async () => {
  server = await startApiServer()
  client = createClient({ url: server.url, key: server.rootKey })
})
afterAll(() => server.close())

/** Takes so many events, then ends the iteration. */
async function take(events: AsyncIterable<ReadEvent>, count: number): Promise<unknown[]> {
  const taken: unknown[] = []
  for await (const event of events) {
    taken.push(event.data)
    if (taken.length === count) break
  }
  return taken
}

describe('following a stream', () => {
  it('N4: yields what is there and what comes, each once, by polling alone', async () => {
    const stream = client.stream('followed')
    await stream.publishMany([1, 2, 3].map((data) => ({ type: 'a', data })))
    const taking = take(stream.follow({ limit: 2, pollMs: 5 }), 5)
    await stream.publish({ type: 'a', data: 4 })
    await stream.publish({ type: 'a', data: 5 })
    expect(await taking).toEqual([1, 2, 3, 4, 5])
  })

  it('begins at the head with what comes from then on', async () => {
    const stream = client.stream('headed')
    await stream.publish({ type: 'a', data: 'old' })
    const events = stream.follow({ after: await stream.head(), pollMs: 5 })
    await stream.publish({ type: 'b', data: 'new' })
    expect(await take(events, 1)).toEqual(['new'])
  })

  it('passes over what its types leave out', async () => {
    const stream = client.stream('typed')
    await stream.publishMany(['a', 'b', 'a'].map((type, data) => ({ type, data })))
    expect(await take(stream.follow({ types: ['a'], pollMs: 5 }), 2)).toEqual([0, 2])
  })

  it('S7: outlives a restart of the server, and says so once each way', async () => {
    const stream = client.stream('restarted')
    const heard: string[] = []
    let interrupted = (): void => {}
    const interruption = new Promise<void>((resolve) => (interrupted = resolve))
    const taking = take(
      stream.follow({
        pollMs: 5,
        onInterrupted: (error) => {
          heard.push((error as MillraceError).code)
          interrupted()
        },
        onResumed: () => heard.push('resumed'),
      }),
      2,
    )
    await stream.publish({ type: 'a', data: 1 })
    await server.stopHttp()
    await interruption
    await server.startHttp()
    // not over HTTP: the pool of fetch may still hold a connection to the server that was
    await publishEvents(server.db, 'restarted', [{ type: 'a', dataText: '2' }])
    expect(await taking).toEqual([1, 2])
    expect(heard).toEqual(['SERVER_UNREACHABLE', 'resumed'])
  })

  it('ends quietly when its signal aborts, also while it waits', async () => {
    const stop = new AbortController()
    const ended = take(client.stream('ended').follow({ pollMs: 60_000, signal: stop.signal }), 1)
    queueMicrotask(() => stop.abort())
    expect(await ended).toEqual([])
  })

  it('throws what trying again cannot help', async () => {
    const wrong = createClient({ url: server.url, key: 'wrong' })
    await expect(take(wrong.stream('a').follow(), 1)).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
    await expect(take(client.stream('a').follow({ after: 9_999_999 }), 1)).rejects.toMatchObject({
      code: 'OFFSET_AHEAD',
    })
  })
})

describe('the long poll', () => {
  const page = (data: number[], next: number): EventPage => ({
    events: data.map((one) => ({
      offset: one,
      type: 'a',
      key: null,
      data: one,
      dataText: String(one),
      headers: null,
      publishedAt: new Date(0),
    })),
    next,
    horizon: next,
  })

  /** Answers each read in turn, and notes what was asked. */
  function script(...answers: (EventPage | Error)[]) {
    const asked: ReadOptions[] = []
    const read = async (options: ReadOptions): Promise<EventPage> => {
      asked.push({ after: options.after, waitSeconds: options.waitSeconds })
      const answer = answers.shift()
      if (answer === undefined) throw new Error('asked too often')
      if (answer instanceof Error) throw answer
      return answer
    }
    return { asked, read }
  }

  it('asks the server to wait, from where the last page ended', async () => {
    const { asked, read } = script(page([1, 2], 2), page([], 7), page([8], 8))
    expect(await take(follow(read, { waitSeconds: 9 }), 3)).toEqual([1, 2, 8])
    expect(asked).toEqual([
      { after: 0, waitSeconds: 9 },
      { after: 2, waitSeconds: 9 },
      { after: 7, waitSeconds: 9 },
    ])
  })

  it('asks without it once the server has refused to know it', async () => {
    const refusal = new MillraceError('INVALID_INPUT', 'wait is unknown', { details: { field: 'wait' } })
    const { asked, read } = script(refusal, page([], 0), page([1], 1))
    expect(await take(follow(read, { pollMs: 1 }), 1)).toEqual([1])
    expect(asked.map(({ waitSeconds }) => waitSeconds)).toEqual([25, undefined, undefined])
  })

  it('goes on when the server is closing', async () => {
    const { read } = script(new MillraceError('STORE_CLOSED', 'closed'), page([1], 1))
    expect(await take(follow(read, {}), 1)).toEqual([1])
  })
})
