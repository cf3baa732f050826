import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { MillraceError } from '../../src/errors/millrace-error.ts'
import type { Forwarder } from '../../src/wakes/forwarder.ts'
import { createPacer } from '../../src/wakes/poll-timer.ts'
import { createDrivenClock, type DrivenClock } from '../support/clock.ts'
import { createHarness, eventually, notification, soon, take, type Harness } from './support/harness.ts'
import { startPooler } from './support/pooler.ts'

let harness: Harness
beforeEach(async () => {
  harness = await createHarness()
})
afterEach(() => harness.close())

const unsupported = expect.objectContaining({ code: 'LISTEN_UNSUPPORTED' }) as MillraceError

/** Drives the clock until the self-test has run out of patience. */
async function untilPolling(forwarder: Forwarder, clock: DrivenClock): Promise<void> {
  await eventually(async () => {
    await clock.advance(1000)
    expect(forwarder.mode).toBe('polling')
  })
}

describe('behind a transaction-mode pooler', () => {
  it('finds out that no notification comes, though LISTEN is accepted', async () => {
    const pooler = await startPooler(harness.url)
    const clock = createDrivenClock()
    const forwarder = harness.forwarder({ connect: pooler.connect, ports: { ...harness.ports, clock } })
    try {
      const listener = forwarder.listen('c')
      forwarder.start()
      await untilPolling(forwarder, clock)
      expect(forwarder.lastError).toEqual(unsupported)
      await expect(soon(listener.ready, 'ready')).rejects.toEqual(unsupported)
      await expect(soon(forwarder.listen('d').ready, 'ready')).rejects.toEqual(unsupported)
    } finally {
      await forwarder.close()
      await pooler.close()
    }
  })

  it('tries again after five minutes, and listens when the address lets wakes through', async () => {
    const pooler = await startPooler(harness.url)
    const clock = createDrivenClock()
    let pooled = true
    const forwarder = harness.forwarder({
      connect: (signal) => (pooled ? pooler.connect() : harness.connect(signal)),
      ports: { ...harness.ports, clock },
    })
    try {
      const listener = forwarder.listen('c')
      const wake = forwarder.subscribeWakes(['s1'])
      forwarder.start()
      await untilPolling(forwarder, clock)
      pooled = false
      await clock.advance(300_000)
      await soon(forwarder.waitFor('listening'), 'listening')
      expect(wake.take()).toBe(true)
      await harness.outside.query(`select pg_catalog.pg_notify('c', 'x')`)
      expect(await take(listener, 2)).toEqual([{ kind: 'reconnected' }, notification('c', 'x')])
    } finally {
      await forwarder.close()
      await pooler.close()
    }
  })
})

describe('where LISTEN is refused', () => {
  it('polls, and says why: a standby', async () => {
    const forwarder = harness.forwarder({
      connect: async (signal) => {
        const connection = await harness.connect(signal)
        const refusal = Object.assign(new Error('cannot execute LISTEN during recovery'), { code: '25006' })
        return { ...connection, execute: () => Promise.reject(refusal) }
      },
    })
    const listener = forwarder.listen('c')
    forwarder.start()
    await soon(forwarder.waitFor('polling'), 'polling')
    expect(forwarder.lastError?.message).toContain('cannot execute LISTEN during recovery')
    await expect(listener.ready).rejects.toEqual(unsupported)
    await eventually(async () => expect(await harness.sessions()).toBe(0))
  })

  it('polls, and says why: a driver without sessions', async () => {
    const refusal = new MillraceError('LISTEN_UNSUPPORTED', 'not over HTTP')
    const forwarder = harness.forwarder({ connect: () => Promise.reject(refusal) })
    forwarder.start()
    await soon(forwarder.waitFor('polling'), 'polling')
    expect(forwarder.lastError).toBe(refusal)
  })

  it('makes no connection with `listen: false`', async () => {
    const forwarder = harness.forwarder({ listen: false })
    const listener = forwarder.listen('c')
    forwarder.start()
    expect(forwarder.mode).toBe('polling')
    await expect(listener.ready).rejects.toEqual(unsupported)
    await forwarder.close()
    expect(harness.proxy.accepted()).toBe(0)
  })
})

describe('N4: a reader that follows a table', () => {
  it('reads the same without wakes as with them, later', async () => {
    await harness.outside.query('create table public.log (n bigserial primary key, at text)')
    const clock = createDrivenClock()
    const ports = { ...harness.ports, clock }
    const readers = [harness.forwarder({ ports }), harness.forwarder({ ports, listen: false })].map(follow)
    for (const { forwarder } of readers) forwarder.start()
    await soon(readers[0]!.forwarder.waitFor('listening'), 'listening')

    for (const total of [10, 20, 30]) {
      await writeUntil(total)
      await eventually(() => expect(readers[0]!.seen).toHaveLength(total))
      expect(readers[1]!.seen.length).toBeLessThan(total)
      await eventually(async () => {
        await clock.advance(1000)
        expect(readers[1]!.seen).toHaveLength(total)
      })
    }
    expect(readers[1]!.seen).toEqual(readers[0]!.seen)
    expect(readers[0]!.outcomes).not.toContain('poll')
    expect(readers[1]!.outcomes).not.toContain('wake')

    function follow(forwarder: Forwarder) {
      const wake = forwarder.subscribeWakes(['s1'])
      const pacer = createPacer({ ports, modes: forwarder })
      const reader = { forwarder, seen: [] as string[], outcomes: new Set<string>() }
      void loop()
      return reader

      async function loop(): Promise<void> {
        for (;;) {
          const rows = await read(reader.seen.length)
          reader.seen.push(...rows)
          if (rows.length > 0) pacer.active()
          const outcome = await pacer.wait({ wake })
          if (outcome === 'aborted') return
          reader.outcomes.add(outcome)
        }
      }
    }

    async function writeUntil(total: number): Promise<void> {
      for (let n = total - 9; n <= total; n++) {
        await harness.outside.query(
          `with row as (insert into public.log (at) values ($1) returning n)
           select pg_catalog.pg_notify('millrace.wake', 's1') from row`,
          [`row ${n}`],
        )
      }
    }

    async function read(after: number): Promise<string[]> {
      const sql = 'select at from public.log where n > $1 order by n'
      return (await harness.outside.query<{ at: string }>(sql, [after])).rows.map((row) => row.at)
    }
  })
})
