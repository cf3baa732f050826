import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createNeonGateway, type NeonGateway } from '../../src/gateway/neon-gateway.ts'
import { silentLog } from '../../src/system-ports.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startGateway } from '../support/gateway.ts'

let database: TestDatabase
let gateway: NeonGateway

beforeAll(async () => {
  database = await createTestDatabase()
  gateway = await startGateway(database.url)
})

afterAll(async () => {
  await gateway.close()
  await database.drop()
})

interface Answer {
  status: number
  body: Record<string, unknown>
}

async function post(body: unknown, headers: Record<string, string> = {}, to = gateway): Promise<Answer> {
  const response = await fetch(`http://${to.host}:${to.port}/sql`, {
    method: 'POST',
    headers: { 'Neon-Connection-String': database.url, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

describe('POST /sql', () => {
  it('gives objects and JSON values unless asked for arrays and text', async () => {
    const query = `select 1::int4 as i, 2::int8 as b, true as t, '{"x":[1]}'::jsonb as j, 'NaN'::float8 as n,
      array[1,2]::int4[] as a, null::int4 as z`
    expect((await post({ query })).body).toMatchObject({
      rows: [{ i: 1, b: '2', t: true, j: { x: [1] }, n: 'NaN', a: [1, 2], z: null }],
      rowAsArray: false,
    })
    const raw = await post({ query }, { 'Neon-Array-Mode': 'true', 'Neon-Raw-Text-Output': 'true' })
    expect(raw.body.rows).toEqual([['1', '2', 't', '{"x": [1]}', 'NaN', '{1,2}', null]])
  })

  it('takes numbers, booleans, lists and objects as parameters', async () => {
    const params = [5, false, [1, 2], { a: 1 }]
    const { body } = await post({
      query: 'select $1::int4 as n, $2::bool as b, $3::int4[] as l, $4::jsonb as o',
      params,
    })
    expect(body.rows).toEqual([{ n: 5, b: false, l: [1, 2], o: { a: 1 } }])
  })

  it('answers an empty batch', async () => {
    expect(await post({ queries: [] })).toEqual({ status: 200, body: { results: [] } })
  })

  it.each([
    [
      'no connection string',
      { query: 'select 1' },
      { 'Neon-Connection-String': '' },
      'is not a postgres:// URL',
    ],
    [
      'one of another kind',
      { query: 'x' },
      { 'Neon-Connection-String': 'http://a:b@c/d' },
      'is not a postgres:// URL',
    ],
    ['one without a user', { query: 'x' }, { 'Neon-Connection-String': 'postgres://c/d' }, 'names no user'],
    ['a body that is not JSON', '{', {}, 'The body is not JSON'],
    ['a body that is no object', '3', {}, 'not a JSON object'],
    ['no query', { params: [] }, {}, '"query" is missing in the body'],
    [
      'parameters that are no list',
      { query: 'select 1', params: 'x' },
      {},
      '"params" in the body is not an array',
    ],
    ['queries that are no list', { queries: {} }, {}, '"queries" is not an array'],
    ['a bad query in a batch', { queries: [{ query: 'select 1' }, null] }, {}, 'missing in queries[1]'],
    ['an unknown isolation level', { queries: [] }, { 'Neon-Batch-Isolation-Level': 'Chaos' }, 'is none of'],
    [
      'a flag that is neither',
      { queries: [] },
      { 'Neon-Batch-Read-Only': 'maybe' },
      'neither true nor false',
    ],
    ['an auth token', { query: 'select 1' }, { Authorization: 'Bearer x' }, 'takes no auth tokens'],
  ])('refuses %s with 400', async (_what, body, headers, message) => {
    const answer = await post(body, headers)
    expect(answer.status).toBe(400)
    expect(answer.body.message).toContain(message)
  })

  it('refuses a body over 64 MiB with 400', async () => {
    const answer = await post('x'.repeat(64 * 1024 * 1024 + 1)).catch((error: Error) => error)
    // The answer can arrive while the rest is still being sent, which fetch reports as a failure.
    if (!(answer instanceof Error))
      expect(answer).toMatchObject({ status: 400, body: { message: expect.stringContaining('over') } })
    expect((await post({ query: 'select 1::int4 as one' })).body.rows).toEqual([{ one: 1 }])
  })

  it('says connection failure when there is no Postgres', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => taken.once('listening', resolve))
    const { port } = taken.address() as AddressInfo
    await new Promise((resolve) => taken.close(resolve))
    const nowhere = await createNeonGateway({
      connectionString: `postgres://x@127.0.0.1:${port}/x`,
      log: silentLog,
    })
    expect(await post({ query: 'select 1' }, {}, nowhere)).toMatchObject({
      status: 400,
      body: { code: '08006' },
    })
    await nowhere.close()
  })

  it('answers 404 elsewhere', async () => {
    const base = `http://${gateway.host}:${gateway.port}`
    expect((await fetch(`${base}/`)).status).toBe(404)
    expect((await fetch(`${base}/sql`)).status).toBe(404)
  })
})

describe('createNeonGateway', () => {
  it('refuses a target that wants TLS', async () => {
    const refused = createNeonGateway({
      connectionString: 'postgres://a:b@localhost/c?ssl=true',
      log: silentLog,
    })
    await expect(refused).rejects.toMatchObject({ code: 'INVALID_SETTING' })
  })

  it('refuses a port that is taken', async () => {
    const refused = createNeonGateway({ connectionString: database.url, port: gateway.port, log: silentLog })
    await expect(refused).rejects.toMatchObject({ code: 'INVALID_SETTING' })
  })

  it('closes while a query runs', async () => {
    const other = await startGateway(database.url)
    const slow = post({ query: 'select pg_sleep(60)' }, {}, other).catch((error: unknown) => error)
    await expect.poll(() => other.connections()).toBe(1)
    await other.close()
    expect(await slow).toBeInstanceOf(Error)
    expect(other.connections()).toBe(0)
  })
})
