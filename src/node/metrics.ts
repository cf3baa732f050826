import { Counter, Gauge, Registry } from 'prom-client'
import type { Db } from '../db/port.ts'
import type { Clock } from '../ports.ts'
import type { WakeMode } from '../wakes/modes.ts'
import type { AttemptReport } from '../webhooks/deliver-event.ts'
import { deliveryBacklog } from '../webhooks/delivery-backlog.ts'
import { createTally } from './tally.ts'

/** The metrics of a process that delivers. */
export interface Metrics {
  /** Counts an attempt that was judged. */
  onAttempt(report: AttemptReport): void
  /**
   * The Prometheus text; asks the database how far delivery is behind. One statement; none while the forwarder
   * sleeps, when what it last knew stands.
   */
  text(): Promise<string>
}

/** From a loopback answer to the longest time-out a webhook can have. */
const attemptBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
/** From a wake at once to a poll after a minute. */
const latencyBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60, 300]

/** What {@link createMetrics} takes. */
export interface MetricsOptions {
  db: Db
  clock: Clock
  /** How wakes arrive. */
  mode: () => WakeMode
  /** Requests on their way. */
  sending: () => number
}

export function createMetrics({ db, clock, mode, sending }: MetricsOptions): Metrics {
  const register = new Registry()
  const registers = [register]
  const attempts = new Counter({
    name: 'millrace_attempts_total',
    help: 'Attempts to deliver, by what became of them.',
    labelNames: ['outcome'],
    registers,
  })
  const countDuration = createTally({
    name: 'millrace_attempt_seconds',
    help: 'How long an attempt took.',
    buckets: attemptBuckets,
    register,
  })
  const countLatency = createTally({
    name: 'millrace_delivery_latency_seconds',
    help: 'From publish to the receipt of events that were delivered at the first attempt.',
    buckets: latencyBuckets,
    register,
  })
  // plain numbers, handed on when somebody asks: thousands a second are counted
  const outcomes: Partial<Record<AttemptReport['outcome']['kind'], number>> = {}
  const inFlight = new Gauge({
    name: 'millrace_sends_in_flight',
    help: 'Deliveries on their way now.',
    registers,
  })
  const setMode = createModeGauge(registers)
  const setBacklog = createBacklogGauges(registers)

  return {
    onAttempt({ event, attempt, result, outcome }) {
      outcomes[outcome.kind] = (outcomes[outcome.kind] ?? 0) + 1
      countDuration(result.durationMs / 1000)
      if (outcome.kind !== 'delivered' || attempt > 1) return
      countLatency(Math.max(0, clock.now() - event.publishedAt.getTime()) / 1000)
    },
    async text() {
      setMode(mode())
      inFlight.set(sending())
      attempts.reset()
      for (const [outcome, count] of Object.entries(outcomes)) attempts.inc({ outcome }, count)
      if (mode() !== 'sleeping') setBacklog(await deliveryBacklog(db))
      return register.metrics()
    },
  }
}

function createModeGauge(registers: Registry[]): (mode: WakeMode) => void {
  const help = 'How wakes arrive: 1 for the mode that is.'
  const gauge = new Gauge({ name: 'millrace_wake_mode', help, labelNames: ['mode'], registers })
  return (mode) => {
    gauge.reset()
    gauge.set({ mode }, 1)
  }
}

function createBacklogGauges(registers: Registry[]) {
  const gauge = (name: string, help: string, labelNames: string[] = []): Gauge =>
    new Gauge({ name, help, labelNames, registers })
  const webhooks = gauge('millrace_webhooks', 'Webhooks, by state.', ['state'])
  const deliveries = gauge('millrace_deliveries', 'Deliveries in trouble, by state.', ['state'])
  const behind = gauge('millrace_webhooks_behind', 'Active webhooks with events to come, up to 1000.')
  const lag = gauge('millrace_delivery_lag_seconds', 'Age of the oldest event not yet taken by its webhook.')
  return (backlog: Awaited<ReturnType<typeof deliveryBacklog>>): void => {
    for (const [state, count] of Object.entries(backlog.webhooks)) webhooks.set({ state }, count)
    for (const [state, count] of Object.entries(backlog.deliveries)) deliveries.set({ state }, count)
    behind.set(backlog.behind)
    lag.set(backlog.lagSeconds)
  }
}
