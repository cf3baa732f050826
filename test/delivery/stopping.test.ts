import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Log } from '../../src/ports.ts'
import { createSystemPorts, silentLog } from '../../src/system-ports.ts'
import { deleteWebhook } from '../../src/webhooks/delete-webhook.ts'
import { pauseWebhook, resumeWebhook } from '../../src/webhooks/operations/set-state.ts'
import { createGate, type ReceivedRequest } from '../support/receiver.ts'
import { countStatements } from './support/counting-db.ts'
import { createWorld, offsetOf, type World } from './support/world.ts'

const { clock } = createSystemPorts()
const leased = 'select lease_token::text as token from millrace.webhooks'
const keys = Array.from({ length: 30 }, (_, n) => `k${n % 10}`)

/** Pausing, deleting and disabling a webhook while requests of it are on their way. */
for (const ordering of ['stream', 'key', 'none'] as const) {
  describe(`a webhook in ${ordering} order that is stopped with work in flight`, () => {
    // in stream order one is on its way at a time
    const inFlight = ordering === 'stream' ? 1 : 4
    let world: World
    let warnings: string[]
    let statements: string[]
    let claims: number

    beforeEach(async () => {
      world = await createWorld()
      warnings = []
      claims = 0
    })
    afterEach(() => world.close())

    const log: Log = { ...silentLog, warn: (_facts, message) => void warnings.push(message) }
    const sentTo = (path: string): ReceivedRequest[] =>
      world.receiver.requests.filter((one) => one.path === path)

    /** Starts, and resolves once so many requests hang, as many as there may be. */
    async function hang(gate: { opened: Promise<void> }): Promise<{ id: string; offsets: number[] }> {
      const { id } = await world.webhook({ path: '/held', ordering, timeoutMs: 30_000 })
      world.receiver.answer(({ path }) => (path === '/held' ? { until: gate.opened } : {}))
      const counting = countStatements(world.db)
      statements = counting.statements
      const ports = { ...createSystemPorts(), log }
      // what hangs is not recorded and passed by meanwhile
      const engine = { maxConcurrency: 4, spillAfterMs: 60_000 }
      world.start({ db: counting.db, ports, engine, onClaim: () => void claims++ })
      const offsets = await world.publish(keys)
      await world.receiver.waitFor(inFlight, 20_000)
      return { id, offsets }
    }

    /** Nobody has it any more, and whatever is still to be claimed has been looked through twice. */
    async function quiet(): Promise<void> {
      await world.until<{ token: string | null }>(leased, (rows) => rows.every(({ token }) => token === null))
      for (const wanted of [claims + 1, claims + 2]) {
        await world.publish(['later'])
        await world.until('select 1', () => claims >= wanted)
      }
      await world.until<{ token: string | null }>(leased, (rows) => rows.every(({ token }) => token === null))
    }

    it('when paused sends nothing after the answer of the call, and all of the rest when resumed', async () => {
      const gate = createGate()
      world.onClose(gate.open)
      const { id, offsets } = await hang(gate)
      expect((await pauseWebhook(world.db, id, clock)).state).toBe('paused')
      const sent = sentTo('/held').map(offsetOf)
      expect(sent).toHaveLength(inFlight)
      gate.open()
      await quiet()
      expect(sentTo('/held').map(offsetOf)).toEqual(sent)
      await resumeWebhook(world.db, id)
      await world.receiver.waitFor(offsets.length + 2, 20_000)
      await world.until<{ done: boolean }>(
        `select w."offset" >= ${offsets.at(-1)} + 2 as done from millrace.webhooks w`,
        ([row]) => row?.done === true,
      )
      const arrived = sentTo('/held').map(offsetOf)
      expect(new Set(arrived).size).toBe(arrived.length)
      expect(arrived).toHaveLength(offsets.length + 2)
      expect(warnings).toEqual([])
    })

    it('when deleted sends nothing after the answer of the call, and leaves nobody busy with it', async () => {
      const gate = createGate()
      world.onClose(gate.open)
      const { id } = await hang(gate)
      await deleteWebhook(world.db, id, { clock })
      expect(sentTo('/held')).toHaveLength(inFlight)
      gate.open()
      await world.webhook({ path: '/other' })
      await world.receiver.waitFor(
        (all) => all.filter(({ path }) => path === '/other').length === keys.length,
        20_000,
      )
      await quiet()
      expect(sentTo('/held')).toHaveLength(inFlight)
      // idle means idle: not a statement of its own, and none that fails again and again
      const before = statements.length
      await quiet()
      expect(statements.length - before).toBeLessThan(20)
      expect(warnings).toEqual([])
      expect(await world.sql('select from millrace.deliveries where webhook_id = $1', [id])).toEqual([])
      expect(await world.sql('select from millrace.attempts where webhook_id = $1', [id])).toEqual([])
    })

    it('when disabled by an answer sends nothing more but what was on its way, until it is enabled', async () => {
      const gate = createGate()
      world.onClose(gate.open)
      world.receiver.answerNext({ until: gate.opened, status: 410 })
      const { id, offsets } = await hang(gate)
      const sent = sentTo('/held').map(offsetOf)
      gate.open()
      await world.until<{ state: string }>(
        'select state from millrace.webhooks',
        ([row]) => row?.state === 'disabled',
      )
      await quiet()
      expect(sentTo('/held').map(offsetOf)).toEqual(sent)
      await resumeWebhook(world.db, id)
      // the one that was answered 410 comes again
      await world.receiver.waitFor(offsets.length + 3, 20_000)
      const arrived = sentTo('/held').map(offsetOf)
      expect(arrived).toHaveLength(offsets.length + 3)
      expect(new Set(arrived).size).toBe(offsets.length + 2)
      expect(arrived.filter((offset) => offset === sent[0])).toHaveLength(2)
      expect(warnings).toEqual([])
    })
  })
}
