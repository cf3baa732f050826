import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { Client, Pool } from '@neondatabase/serverless'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import type { NeonGateway } from '../../src/gateway/neon-gateway.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startGateway, useGateway } from '../support/gateway.ts'

let database: TestDatabase
let gateway: NeonGateway

let undo: () => void
beforeAll(async () => {
  database = await createTestDatabase()
  gateway = await startGateway(database.url)
  undo = useGateway(gateway)
})

afterAll(async () => {
  undo()
  await gateway.close()
  await database.drop()
})

describe('the WebSocket driver through the gateway', () => {
  it('runs an interactive transaction in a pool', async () => {
    const pool = new Pool({ connectionString: database.url })
    await pool.query('create table public.note (text text)')
    const client = await pool.connect()
    await client.query('begin')
    await client.query('insert into public.note values ($1)', ['lost'])
    await client.query('rollback')
    client.release()
    expect((await pool.query('select * from public.note')).rows).toEqual([])
    await pool.end()
  })

  it('receives notifications', async () => {
    const listener = new Client(database.url)
    await listener.connect()
    const heard = new Promise((resolve) => listener.on('notification', resolve))
    await listener.query('listen news')
    const pool = new Pool({ connectionString: database.url })
    await pool.query("select pg_notify('news', 'hello')")
    expect(await heard).toMatchObject({ channel: 'news', payload: 'hello' })
    await Promise.all([listener.end(), pool.end()])
  })

  it('carries 8 MiB both ways', async () => {
    const client = new Client(database.url)
    await client.connect()
    const big = 'x'.repeat(8 * 1024 * 1024)
    const { rows } = await client.query('select $1::text as big', [big])
    expect(rows[0].big === big).toBe(true)
    await client.end()
  })

  it('leads to its own target, whatever address the client names', async () => {
    const url = new URL(database.url)
    url.host = '192.0.2.1:9'
    const client = new Client(url.href)
    await client.connect()
    expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }])
    await client.end()
  })

  it('is told when its session is ended', async () => {
    const victim = new Client(database.url)
    await victim.connect()
    const lost = new Promise((resolve) => victim.on('error', resolve))
    const { rows } = await victim.query('select pg_backend_pid() as pid')
    const pool = new Pool({ connectionString: database.url })
    await pool.query('select pg_terminate_backend($1)', [rows[0].pid])
    expect(await lost).toBeInstanceOf(Error)
    await pool.end()
  })

  it('leaves no connection behind', async () => {
    await expect.poll(() => gateway.connections()).toBe(0)
    const client = new Client(database.url)
    await client.connect()
    expect(gateway.connections()).toBe(1)
    await client.end()
    await expect.poll(() => gateway.connections()).toBe(0)
  })
})

describe('a tunnel', () => {
  it.each([
    ['ends', (socket: WebSocket) => socket.close()],
    ['is lost', (socket: WebSocket) => socket.terminate()],
  ])('ends its connection to Postgres when the client %s', async (_how, leave) => {
    // A target that, unlike Postgres, never closes by itself.
    const target = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
    await once(target, 'listening')
    const { port } = target.address() as AddressInfo
    const tunnels = await startGateway(`postgres://x@127.0.0.1:${port}/x`)
    const arrival = once(target, 'connection') as Promise<[Socket]>
    const socket = new WebSocket(`ws://${tunnels.host}:${tunnels.port}/v2`)
    await once(socket, 'open')
    const [far] = await arrival
    const ended = once(far.resume(), 'end')
    leave(socket)
    await ended
    far.destroy()
    target.close()
    await tunnels.close()
  })
})

describe('the WebSocket endpoint', () => {
  function open(path: string, origin?: string): Promise<string> {
    const socket = new WebSocket(
      `ws://${gateway.host}:${gateway.port}${path}`,
      origin === undefined ? {} : { origin },
    )
    return new Promise((resolve) => {
      socket.on('open', () => {
        socket.terminate()
        resolve('open')
      })
      socket.on('error', (error) => resolve(error.message))
    })
  }

  it('refuses other paths, and pages of other sites', async () => {
    expect(await open('/v2?address=x:1')).toBe('open')
    expect(await open('/v2', 'http://localhost:5173')).toBe('open')
    expect(await open('/v3')).toContain('404')
    expect(await open('/v2', 'https://example.com')).toContain('403')
    expect(await open('/v2', 'http://localhost.example.com')).toContain('403')
  })
})
