import { afterEach, expect, it, vi } from 'vitest'
import { publishEvents } from '../../src/streams/publish-events.ts'
import { trimStream } from '../../src/streams/trim-stream.ts'
import { createSystemPorts } from '../../src/system-ports.ts'
import { createForwarder, type Forwarder } from '../../src/wakes/forwarder.ts'
import { notify } from '../../src/wakes/notify.ts'
import { notification, soon, take } from '../wakes/support/harness.ts'
import { describeOnEveryDriver } from './drivers.ts'

describeOnEveryDriver(
  'the forwarder',
  (given, binding) => {
    let forwarder: Forwarder | undefined
    /** The forwarder's sessions on the server, the newest last. */
    let pids: string[] = []

    function start(): Forwarder {
      const { db } = given()
      pids = []
      forwarder = createForwarder({
        schema: db.schema,
        ports: createSystemPorts(),
        connect: async (signal) => {
          const connection = await db.connectDirect({ signal })
          const [row] = await connection.query('select pg_catalog.pg_backend_pid()::text as pid')
          pids.push(String(row?.pid))
          return connection
        },
      })
      forwarder.start()
      return forwarder
    }
    afterEach(() => forwarder?.close())

    it('listens, and lets go of what nobody listens to', async () => {
      const { db } = given()
      const wakes = start()
      await soon(wakes.waitFor('listening'), 'listening')
      const channels = ['plain', 'Upper', 'a "quoted"; name', 'grüße']
      const listeners = channels.map((channel) => wakes.listen(channel))
      await soon(Promise.all(listeners.map(({ ready }) => ready)), 'ready')
      for (const [n, channel] of channels.entries()) {
        await notify(db, channel, `to ${channel}`)
        expect(await take(listeners[n]!, 1)).toEqual([notification(channel, `to ${channel}`)])
      }
      for (const listener of listeners.slice(1)) listener.close()
      const again = wakes.listen('Upper')
      await soon(again.ready, 'ready')
      await notify(db, 'Upper', 'again')
      expect(await take(again, 1)).toEqual([notification('Upper', 'again')])
    })

    it('N1: brings what a transaction sends if and only if it commits', async () => {
      const { db } = given()
      const wakes = start()
      const listener = wakes.listen('c')
      await soon(listener.ready, 'ready')
      const rolledBack = db.transaction(async (tx) => {
        await notify(db, 'c', 'never', { tx: tx.drizzle })
        throw new Error('rolled back')
      })
      await expect(rolledBack).rejects.toThrow('rolled back')
      await db.transaction((tx) => notify(db, 'c', 'committed', { tx: tx.drizzle }))
      expect(await take(listener, 1)).toEqual([notification('c', 'committed')])
    })

    it('is woken by a publish, in a transaction or by itself, for its stream alone', async () => {
      const { db } = given()
      const event = { type: 't', dataText: '1' }
      const { streamId } = await publishEvents(db, 'watched', [event])
      const other = await publishEvents(db, 'other', [event])
      const wakes = start()
      await soon(wakes.waitFor('listening'), 'listening')
      const wake = wakes.subscribeWakes([`s${streamId}`])
      const otherWake = wakes.subscribeWakes([`s${other.streamId}`])
      await publishEvents(db, 'watched', [event])
      expect(await soon(wake.wait(), 'a wake')).toBe('wake')
      await db.transaction((tx) => publishEvents(db, 'watched', [event], { tx: tx.drizzle }))
      expect(await soon(wake.wait(), 'a wake')).toBe('wake')
      expect(otherWake.take()).toBe(false)
    })

    it('S4: is not woken by a trim, in a transaction or by itself', async () => {
      const { db } = given()
      const event = { type: 't', dataText: '1' }
      const { offsets } = await publishEvents(db, 'trimmed', [event, event, event])
      const barrier = await publishEvents(db, 'barrier', [event])
      const wakes = start()
      await soon(wakes.waitFor('listening'), 'listening')
      const wake = wakes.subscribeWakes([`s${barrier.streamId}`])
      const heard: string[] = []
      wakes.onWake((subject) => heard.push(subject))
      expect(await trimStream(db, 'trimmed', offsets[0]!)).toBe(1)
      await db.transaction((tx) => trimStream(db, 'trimmed', offsets[1]!, { tx: tx.drizzle }))
      // notifications come in the order of the commits: what a trim had sent would be here before this one
      await publishEvents(db, 'barrier', [event])
      expect(await soon(wake.wait(), 'a wake')).toBe('wake')
      expect(heard).toEqual([`s${barrier.streamId}`])
    })

    const severable = binding.capabilities.sessions
    if (!severable) process.stderr.write(`not on ${binding.name}: a lost session (it lacks sessions)\n`)
    it.runIf(severable)('N2: says so when a lost session stands again', async () => {
      const { db } = given()
      const wakes = start()
      const listener = wakes.listen('c')
      await soon(listener.ready, 'ready')
      await db.drizzle.execute(`select pg_catalog.pg_terminate_backend(${pids[0]})`)
      expect(await take(listener, 1)).toEqual([{ kind: 'reconnected' }])
      await notify(db, 'c', 'after')
      expect(await take(listener, 1)).toEqual([notification('c', 'after')])
    })

    it('leaves no session behind', async () => {
      const { db } = given()
      const wakes = start()
      await soon(wakes.waitFor('listening'), 'listening')
      await soon(wakes.close(), 'the close')
      if (!binding.capabilities.sessions) return
      await vi.waitFor(
        async () => {
          const sql = `select 1 from pg_catalog.pg_stat_activity where pid in (${pids.join(', ')})`
          expect(((await db.drizzle.execute(sql)) as { rows?: unknown }).rows).toEqual([])
        },
        { timeout: 10_000 },
      )
    })
  },
  { needs: ['listen', 'interactiveTx'] },
)
