import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClient } from '../../src/client/client.ts'
import { publishEvents } from '../../src/streams/publish-events.ts'
import { startApiServer, type ApiServer } from '../support/api-server.ts'
import { envOf, run, start, type CommandOptions } from './support/run.ts'

let server: ApiServer

beforeAll(async () => {
  server = await startApiServer()
})
afterAll(() => server.close())

const tail = (args: string[], options: CommandOptions = {}) =>
  start(['tail', ...args], { ...options, env: { ...envOf(server), ...options.env } })

const publish = (stream: string, ...dataTexts: string[]) =>
  publishEvents(
    server.db,
    stream,
    dataTexts.map((dataText) => ({ type: 'a', dataText })),
  )

describe('millrace tail', () => {
  it('into a pipe prints what is there, in order, and ends', async () => {
    await publishEvents(server.db, 'piped', [
      { type: 'order.created', dataText: '{"a":\n  1}', key: 'k' },
      { type: 'order.paid', dataText: '2' },
    ])
    const command = tail(['piped'])
    expect(await command.done).toBe(0)
    const time = String.raw`\d\d:\d\d:\d\d\.\d{3}`
    expect(command.out()).toMatch(
      new RegExp(`^ +\\d+  ${time}  order\\.created key=k  {"a": 1}\\n +\\d+  ${time}  order\\.paid  2\\n$`),
    )
    expect(command.err()).toBe('')
  })

  it('S9: with --json prints the data as it was published, a line each', async () => {
    await publish('exact', '{"n":12345678901234567890,\n"n":1.0}', '"\\n"')
    const command = tail(['exact', '--json'])
    await command.done
    const [first, second] = command.out().split('\n')
    expect(first).toContain('"data":{"n":12345678901234567890, "n":1.0},"headers":null,"publishedAt":"')
    expect(JSON.parse(second!)).toMatchObject({ type: 'a', key: null, data: '\n' })
  })

  it('never lets a publisher control the terminal', async () => {
    await publishEvents(server.db, 'hostile', [
      { type: 'a\u009b2J', dataText: '"\u007f\u202e\u009b31m"', key: 'k\u0090' },
    ])
    const command = tail(['hostile'])
    await command.done
    expect(command.out()).toContain(String.raw`a\u009b2J key=k\u0090  "\u007f\u202e\u009b31m"`)
  })

  it('begins after the offset, with the types, and ends after the count that it is told', async () => {
    const { offsets } = await publishEvents(
      server.db,
      'picked',
      ['x', 'a', 'b', 'a', 'a'].map((type, data) => ({ type, dataText: String(data) })),
    )
    const command = tail([
      'picked',
      '--from',
      String(offsets[0]),
      '--types',
      'a,c*',
      '--count',
      '2',
      '--json',
    ])
    await command.done
    const events = command
      .out()
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { data: number }).data)
    expect(events).toEqual([1, 3])
  })

  it('on a terminal follows from now, in colours, until Ctrl-C, which is no failure', async () => {
    await publish('live', '"old"')
    const command = tail(['live'], { tty: true })
    await command.until((_out, err) => err.includes('Following live'))
    await publish('live', '"new"')
    await command.until((out) => out.includes('"new"'))
    command.interrupt()
    expect(await command.done).toBe(0)
    expect(command.out()).toContain('\u001b[36ma\u001b[39m  "new"\n')
    expect(command.out()).not.toContain('"old"')
  })

  it('lets the server wait for what comes, instead of asking again and again', async () => {
    const { offsets } = await publish('waiting', '0')
    const asked: string[] = []
    const fetch: typeof globalThis.fetch = (input, init) => {
      asked.push(new URL(input as string).searchParams.get('wait') ?? 'at once')
      return globalThis.fetch(input, init)
    }
    const command = tail(['waiting', '--from', String(offsets[0]), '--follow'], { fetch })
    for (let n = 1; n <= 3; n++) {
      await expect.poll(() => asked.length).toBe(n)
      await publish('waiting', String(n))
      await command.until((out) => out.includes(`a  ${n}\n`))
    }
    await expect.poll(() => asked.length).toBe(4)
    expect(new Set(asked).size).toBe(1)
    expect(Number(asked[0])).toBeGreaterThan(0)
    command.interrupt()
    expect(await command.done).toBe(0)
  })

  it('honours NO_COLOR', async () => {
    await publish('plain', '1')
    const command = tail(['plain', '--no-follow', '--from', 'start'], { tty: true, env: { NO_COLOR: '1' } })
    await command.done
    expect(command.out()).toMatch(/ a {2}1\n$/)
    expect(command.out()).not.toContain('\u001b')
  })

  it('S7: outlives a restart of the server and misses nothing', async () => {
    await publish('restarted', '1')
    const command = tail(['restarted', '--from', 'start', '--follow'])
    await command.until((out) => out.includes('a  1\n'))
    await server.stopHttp()
    await command.until((_out, err) => err.includes('trying again'))
    await publish('restarted', '2')
    await server.startHttp()
    await command.until((out, err) => out.includes('a  2\n') && err.includes('answers again'))
    command.interrupt()
    expect(await command.done).toBe(0)
    expect(command.out().match(/a {2}\d/g)).toEqual(['a  1', 'a  2'])
    expect(command.err()).toBe(
      `nothing answers at ${server.url} — is \`npm start\` running? — trying again …\nThe server answers again.\n`,
    )
  })

  it('does not follow a busy stream into a pipe for ever', async () => {
    await publish('busy', '1')
    const client = createClient({ url: server.url, key: server.rootKey })
    let reads = 0
    const fetch: typeof globalThis.fetch = async (input, init) => {
      // whatever is read, more has been published when the next page is asked for
      reads += 1
      if (reads > 1) await client.stream('busy').publish({ type: 'a', data: 'later' })
      return globalThis.fetch(input, init)
    }
    const { code, out } = await run(['tail', 'busy'], { env: envOf(server), fetch })
    expect([code, out.match(/later/g)]).toEqual([0, null])
    expect(out).toContain('a  1\n')
  })

  it('without following, says that an offset is beyond everything, and that there is no such stream', async () => {
    await publish('short', '1')
    const ahead = tail(['short', '--from', '99999999'])
    expect(await ahead.done).toBe(1)
    expect(ahead.err()).toContain('lies beyond')
    const none = tail(['missing'])
    expect([await none.done, none.out()]).toEqual([0, ''])
    expect(none.err()).toBe('There is no stream missing: it begins with its first event.\n')
    const nothing = tail(['short', '--types', 'b'])
    expect([await nothing.done, nothing.out(), nothing.err()]).toEqual([0, '', ''])
  })

  it('refuses what is no position', async () => {
    const command = tail(['s', '--from', 'yesterday'])
    expect(await command.done).toBe(2)
    expect(command.err()).toContain('It must be start, now or an offset.')
  })
})
