import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openMigratedSession } from '../support/migrated.ts'

const read = `select o_offset::int as offset, o_data as data, o_headers as headers
  from millrace.read_events($1, 0, $2, $3, null, $4, 10000)`

interface Stored {
  offset: number
  type: string
  data: string
  headers: string | null
}

/** Of every way in which Postgres stores a value one, by the place of an event in its stream. */
const small = (n: number): string => JSON.stringify({ n })
const compressed = (): string => JSON.stringify('x'.repeat(9000))
const plain = (): string => JSON.stringify(randomBytes(1200).toString('base64'))
const outOfLine = (): string => JSON.stringify(randomBytes(4000).toString('base64'))

describe('a page of read_events ends with the first event by which its size is reached (S1)', () => {
  let client: pg.Client
  let close: () => Promise<void>
  beforeAll(async () => {
    ;({ client, close } = await openMigratedSession())
  })
  afterAll(() => close())

  async function store(stream: string, data: string[], headers: (string | null)[]): Promise<Stored[]> {
    const types = data.map((_, n) => (n % 3 === 0 ? 'other' : 't'))
    const { rows } = await client.query<{ offsets: string[] }>(
      `select o_offsets as offsets from millrace.append($1, $2, array_fill(null::text, array[$3::int]), $4, $5, null, null)`,
      [stream, types, data.length, data, headers],
    )
    return rows[0]!.offsets.map((offset, n) => ({
      offset: Number(offset),
      type: types[n]!,
      data: data[n]!,
      headers: headers[n]!,
    }))
  }

  const sizeOf = ({ data, headers }: Stored): number =>
    Buffer.byteLength(data) + Buffer.byteLength(headers ?? '')

  /** Reads with bounds on, just below and just above where each of some events ends. */
  async function expectExactEnds(stream: string, stored: Stored[], limit: number): Promise<void> {
    let size = 0
    for (const [n, event] of stored.entries()) {
      size += sizeOf(event)
      if (n % 47 !== 0 && n < stored.length - 2) continue
      for (const maxBytes of [size - 1, size, size + 1]) await expectPage(stream, stored, limit, maxBytes)
    }
    await expectPage(stream, stored, limit, 1e9)
  }

  async function expectPage(stream: string, all: Stored[], limit: number, maxBytes: number): Promise<void> {
    const types = all.some(({ type }) => type === 'other') ? null : '{t}'
    const { rows } = await client.query<Stored>(read, [stream, limit, types, maxBytes])
    const summary = JSON.parse(rows.pop()!.data) as { more: boolean }
    let size = 0
    const page = all.slice(0, limit).filter((event) => {
      const fits = size < maxBytes
      size += sizeOf(event)
      return fits
    })
    const reached = page.reduce((sum, event) => sum + sizeOf(event), 0) >= maxBytes
    expect(rows).toEqual(page.map(({ offset, data, headers }) => ({ offset, data, headers })))
    expect(summary.more).toBe(reached || page.length === limit)
  }

  const none = (): null => null
  const mixes: [string, (n: number) => string, (n: number) => string | null][] = [
    ['small ones', small, none],
    ['small ones with headers', small, (n) => JSON.stringify({ h: `${n}` })],
    ['compressed ones', compressed, none],
    ['small ones, the last compressed', (n) => (n === 239 ? compressed() : small(n)), none],
    ['ones that do not compress', plain, none],
    ['ones that are stored out of line', outOfLine, none],
    ['small ones with headers that compress', small, () => JSON.stringify({ h: 'x'.repeat(4000) })],
    ['all kinds', (n) => [small, compressed, small, plain, outOfLine][n % 5]!(n), none],
  ]
  it.each(mixes)('of %s', async (stream, data, headers) => {
    const numbers = Array.from({ length: 240 }, (_, n) => n)
    const stored = await store(stream, numbers.map(data), numbers.map(headers))
    await expectExactEnds(stream, stored, 1000)
    await expectExactEnds(stream, stored, 150)
    await expectExactEnds(
      stream,
      stored.filter(({ type }) => type === 't'),
      1000,
    )
  })

  it('and has a value of it stored in each of the ways', async () => {
    const { rows } = await client.query(
      `select bool_or(pg_column_compression(data) is not null and pg_column_size(data) < 1000) as "small inside",
          bool_or(pg_column_compression(headers) is not null) as headers,
          bool_or(pg_column_compression(data) is null and pg_column_size(data) between 1600 and 2000) as plain,
          bool_or(pg_column_compression(data) is null and pg_column_size(data) > 5000) as "out of line"
        from millrace.events`,
    )
    expect(rows).toEqual([{ 'small inside': true, headers: true, plain: true, 'out of line': true }])
  })
})
