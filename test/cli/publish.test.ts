import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClient } from '../../src/client/client.ts'
import { startApiServer, type ApiServer } from '../support/api-server.ts'
import { envOf, run, type CommandOptions, type CommandResult } from './support/run.ts'

let server: ApiServer
let folder: string

beforeAll(async () => {
  server = await startApiServer()
  folder = await mkdtemp(join(tmpdir(), 'millrace-cli-'))
})
afterAll(async () => {
  await server.close()
  await rm(folder, { recursive: true })
})

const publish = (args: string[], options: CommandOptions = {}): Promise<CommandResult> =>
  run(['publish', ...args], { ...options, env: { ...envOf(server), ...options.env } })

async function stored(stream: string): Promise<{ type: string; key: string | null; dataText: string }[]> {
  const client = createClient({ url: server.url, key: server.rootKey })
  const { events } = await client.stream(stream).read({ limit: 1000 })
  return events.map(({ type, key, dataText }) => ({ type, key, dataText }))
}

const lines = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, index) => `{"type":"a","data":${from + index}}`)

describe('millrace publish', () => {
  it('S9: stores the argument byte for byte, with key and headers', async () => {
    const data = '{ "n": 12345678901234567890, "n": 1.0 }'
    const { code, out, err } = await publish(['one', data, '-t', 'a.b', '-k', 'k 1', '--header', 'x=1=2'])
    expect([code, err]).toEqual([0, ''])
    expect(out).toMatch(/^✓ published to one at offset \d+\n$/)
    expect(await stored('one')).toEqual([{ type: 'a.b', key: 'k 1', dataText: data }])
  })

  it('reads the data from stdin, with - or without', async () => {
    expect((await publish(['in', '-', '--type', 'a'], { stdin: '\ufeff[1]\n' })).code).toBe(0)
    expect((await publish(['in', '--type', 'a'], { stdin: '[2]' })).code).toBe(0)
    expect((await stored('in')).map(({ dataText }) => dataText)).toEqual(['[1]', '[2]'])
  })

  it('says when the idempotency key was known', async () => {
    const args = ['again', '1', '-t', 'a', '--idempotency-key', 'k']
    expect((await publish(args)).out).toContain('✓ published to again')
    expect((await publish(args)).out).toContain('✓ was published before to again')
    expect(JSON.parse((await publish([...args, '--json'])).out)).toMatchObject({ replayed: true })
    expect(await stored('again')).toHaveLength(1)
  })

  it.each([
    ['{"a":1,}', 'data is not valid JSON at column 8: expected a name in double quotes, found "}"'],
    [
      'hello',
      `data is not valid JSON at column 1: expected a value, found "h" (a text needs quotes of its own: '"hello"')`,
    ],
    [
      "{'a':1}",
      `data is not valid JSON at column 2: expected a name in double quotes, found "'" (JSON takes double quotes only)`,
    ],
    ['{\n "a": tru\n}', 'data is not valid JSON at line 2, column 7: expected a value, found "t"'],
    ['[1', 'data is not valid JSON at column 3: expected "," or "]", the text ends'],
    ['', 'data is empty'],
  ])('refuses %j and says where', async (data, problem) => {
    const { code, out, err } = await publish(['refused', data, '-t', 'a'])
    expect([code, out, err]).toEqual([1, '', `millrace: ${problem} (INVALID_JSON)\n`])
    expect(await stored('refused')).toEqual([])
  })

  it('says what is wrong with the call, and exits with 2', async () => {
    const problem = async (...args: string[]): Promise<string> => {
      const { code, err } = await publish(args)
      expect(code).toBe(2)
      return err
    }
    expect(await problem('s', '1')).toMatch(
      /^millrace: an event needs a type: .* \(see `millrace publish --help`\)\n$/,
    )
    expect(await problem('s', '-t', 'a')).toContain('the data is missing')
    expect(await problem('s', '1', '-t', 'a', '--tipe', 'b')).toContain(
      "unknown option '--tipe' (Did you mean --type?)",
    )
    expect(await problem('s', '1', '-t', 'a', '--header', 'x')).toContain('It must be name=value')
    expect(await problem('s', '--ndjson', '-', '-t', 'a')).toContain('leave --type out')
    expect(await problem()).toContain("missing required argument 'stream'")
  })
})

describe('millrace publish --ndjson', () => {
  it('publishes a file in order, across batches, blank lines and line ends of Windows', async () => {
    const file = join(folder, 'many.ndjson')
    await writeFile(file, `\ufeff${lines(1, 600).join('\r\n')}\n\n${lines(601, 1300).join('\n')}`)
    const { code, out, err } = await publish(['many', '--ndjson', file, '--json'])
    expect([code, err]).toEqual([0, ''])
    expect(JSON.parse(out)).toMatchObject({ events: 1300, batches: 3 })
    const client = createClient({ url: server.url, key: server.rootKey })
    const { events, next } = await client.stream('many').read({ limit: 1000 })
    events.push(...(await client.stream('many').read({ after: next, limit: 1000 })).events)
    expect(events.map(({ data }) => data)).toEqual(Array.from({ length: 1300 }, (_, index) => index + 1))
  })

  it('keeps each batch below 900 KiB, whatever the size of the lines', async () => {
    const sizes: number[] = []
    const fetch: typeof globalThis.fetch = (input, init) => {
      sizes.push(Buffer.byteLength(String(init?.body)))
      return globalThis.fetch(input, init)
    }
    const line = `{"type":"a","data":"${'ü'.repeat(150_000)}"}`
    const { code, err } = await publish(['large', '--ndjson', '-'], { stdin: `${line}\n`.repeat(5), fetch })
    expect([code, err]).toEqual([0, ''])
    // three lines of 300 KB, then two
    expect(sizes).toHaveLength(2)
    expect(Math.max(...sizes)).toBeLessThan(900 * 1024)
  })

  it('stops before the batch with a bad line, and says where to go on', async () => {
    const text = [...lines(1, 700), '{"type":"a","data":}', ...lines(702, 900)].join('\n')
    const { code, out, err } = await publish(['stops', '--ndjson', '-'], { stdin: text })
    expect([code, out]).toEqual([1, ''])
    expect(err).toBe(
      'millrace: line 701 is not valid JSON at column 20: expected a value, found "}" (INVALID_JSON); the 500 events before line 501 are published, nothing from line 501 on is: go on with --from-line 501\n',
    )
    expect(await stored('stops')).toHaveLength(500)
    const mended = text.replace('"data":}', '"data":701}')
    expect((await publish(['stops', '--ndjson', '-', '--from-line', '501'], { stdin: mended })).code).toBe(0)
    expect((await stored('stops')).map(({ dataText }) => Number(dataText))).toEqual(
      Array.from({ length: 900 }, (_, index) => index + 1),
    )
  })

  it('names the line of the file that the server refuses', async () => {
    const text = [...lines(1, 501), '', '{"type":"","data":1}'].join('\n')
    const { code, err } = await publish(['named', '--ndjson', '-'], { stdin: text })
    expect(code).toBe(1)
    expect(err).toMatch(
      /^millrace: line 503: type must not be empty \(INVALID_INPUT\); the 500 events before line 501 /,
    )
    const alone = await publish(['named', '--ndjson', '-'], { stdin: '\n{"type":"","data":1}' })
    expect(alone.err).toBe('millrace: line 2: type must not be empty (INVALID_INPUT)\n')
  })

  it('publishes what is missing when the same file is run again with the same idempotency key', async () => {
    const args = ['resumed', '--ndjson', '-', '--idempotency-key', 'import']
    const broken = [...lines(1, 600), '{'].join('\n')
    expect((await publish(args, { stdin: broken })).code).toBe(1)
    expect((await publish(args, { stdin: [...lines(1, 601)].join('\n') })).code).toBe(0)
    expect(await stored('resumed')).toHaveLength(601)
  })

  it('sends a batch again whose answer got lost, and stores it once', async () => {
    let requests = 0
    const fetch: typeof globalThis.fetch = async (input, init) => {
      const response = await globalThis.fetch(input, init)
      requests += 1
      if (requests === 2) throw new TypeError('fetch failed')
      return response
    }
    const { code } = await publish(['lost', '--ndjson', '-'], { stdin: lines(1, 900).join('\n'), fetch })
    expect([code, requests]).toEqual([0, 3])
    expect(await stored('lost')).toHaveLength(900)
  })

  it('draws its progress on a terminal only, and takes it away', async () => {
    const file = join(folder, 'progress.ndjson')
    await writeFile(file, lines(1, 10).join('\n'))
    const { err } = await publish(['bar', '--ndjson', file], { tty: true, env: { NO_COLOR: '1' } })
    const wipe = '\r\u001b[K'
    const [before, shown, after] = err.split(wipe)
    expect([before, after]).toEqual(['', ''])
    expect(shown).toMatch(/^bar █{24} 100 % 10 events, [\d,]+\/s$/)
  })

  it('refuses files that it cannot read', async () => {
    const refused = async (file: string, stdin?: Uint8Array): Promise<string> => {
      const { code, err } = await publish(['s', '--ndjson', file], { stdin })
      expect(code).toBe(1)
      return err
    }
    expect(await refused(join(folder, 'nowhere'))).toContain('nowhere cannot be read: there is no such file')
    expect(await refused(folder)).toContain('is a folder')
    expect(await refused('-', new Uint8Array([0x7b, 0xff, 10]))).toContain('line 1 is not valid UTF-8')
    expect(await refused('-', new Uint8Array(5 * 1024 * 1024))).toContain('line 1 is longer than')
  })
})
