import { expect, it, vi } from 'vitest'
import { recur, type RecurringTask } from '../../src/node/recurring.ts'
import { createAgenda } from '../../src/wakes/agenda.ts'
import { createDrivenClock } from '../support/clock.ts'

it.each([
  { unasked: true, nextMs: Infinity },
  { unasked: false, nextMs: 40_000 },
])('who has just looked has a forwarder come back only when that was asked for: %j', async (expected) => {
  const clock = createDrivenClock()
  const agenda = createAgenda(clock)
  const stopping = new AbortController()
  let wake: (subject: 'all') => void = () => {}
  const forwarder: RecurringTask['forwarder'] = {
    mode: 'listening',
    unasked: expected.unasked,
    agenda,
    onMode: () => () => {},
    onWake: (fn) => {
      wake = fn
      return () => {}
    },
  }
  const running = recur({
    name: 'look',
    forwarder,
    ports: { clock, random: () => 0, log: { debug() {}, info() {}, warn() {}, error() {} } },
    poll: { minMs: 1_000, maxMs: 60_000 },
    signal: stopping.signal,
    concerns: () => false,
    restMs: 60_000,
    run: async () => ({ nextDueInMs: null, active: false }),
  })
  await vi.waitFor(() => expect(agenda.nextDueAt).toBe(Infinity))
  await clock.advance(20_000)
  wake('all')
  // the loop takes a poke in turns of its own
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  await vi.waitFor(() => expect(agenda.nextDueAt - clock.now()).toBe(expected.nextMs))
  stopping.abort()
  await running
})
