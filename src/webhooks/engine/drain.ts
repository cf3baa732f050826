import { createSignal } from './signal.ts'
import { createAllowance, unlimited } from './allowance.ts'
import type { ClaimScope } from './claim-webhooks.ts'
import { Engine, type EngineOptions } from './engine.ts'
import { defaultEngineSettings, type EngineSettings } from './engine-settings.ts'

/** What {@link drain} takes. */
export interface DrainOptions extends Omit<EngineOptions, 'settings' | 'allowance'> {
  /** Which webhooks. Default: all. */
  scope?: ClaimScope
  /** Stop after so many milliseconds, with what is being sent finished or broken off. */
  budgetMs: number
  /** At most so many statements and sends; 10 are the least that get anything done. Default: any number. */
  maxRequests?: number
  settings?: Partial<EngineSettings>
}

/** What {@link drain} returns. */
export interface DrainReport {
  /** Webhooks that were worked on; one that was worked on twice counts twice. */
  webhooks: number
  /** The time or the requests ran out before the work did. */
  cut: boolean
  /** Milliseconds until there may be something to do again, 0 when cut; null: nothing is known to be. */
  nextDueInMs: number | null
  /** The environment the database belongs to, when it is not the one asked for; nothing was done then. */
  foreignEnvironment: { environment: string | null } | null
}

/** So much of the time is kept for what is being sent to finish, and for writing it down. */
const finishShare = 0.2
/** What lies above the horizon, held back by a publisher still at it, is worth another look so much later. */
const heldBackMs = 1_000

/**
 * One bounded run of the delivery engine: delivers until nothing is left to claim, or the time or the
 * requests are spent; then what is being sent gets the rest of the time to finish. For one webhook and a few events that is four statements: claim, read, flush, claim again
 * (what was published while the lease was being given back).
 */
export async function drain(options: DrainOptions): Promise<DrainReport> {
  const { clock } = options.ports
  const settings = { ...defaultEngineSettings, ...drainSettings, ...options.settings }
  const allowance = options.maxRequests === undefined ? unlimited : createAllowance(options.maxRequests)
  const engine = new Engine({ ...options, settings, allowance })
  const signal = createSignal(clock)
  const report: DrainReport = { webhooks: 0, cut: allowance.low, nextDueInMs: null, foreignEnvironment: null }
  const endAt = clock.now() + options.budgetMs
  const stopAt = endAt - options.budgetMs * finishShare
  // what has ended since the last claim: at first, and after any progress, a claim may bring something
  let worthClaiming = true
  engine.onLaneEnd((_stream, progressed) => {
    worthClaiming ||= progressed
    signal.fire()
  })
  allowance.onLow(() => signal.fire())
  let full = false
  try {
    while (!report.cut) {
      if (engine.active === 0 && !worthClaiming) {
        report.nextDueInMs = Math.min(report.nextDueInMs ?? Infinity, heldBackMs)
        break
      }
      if (engine.active === 0 || full) {
        worthClaiming = false
        const claimed = await engine.claim(options.scope ?? { kind: 'all' })
        full = claimed.full
        report.webhooks += claimed.started
        report.nextDueInMs = claimed.nextDueInMs
        report.foreignEnvironment = claimed.foreignEnvironment
        if (claimed.started === 0 && engine.active === 0) break
      }
      if (engine.active > 0 && !allowance.low) await signal.wait(Math.max(0, stopAt - clock.now()))
      report.cut = allowance.low || clock.now() >= stopAt
    }
  } finally {
    await engine.stop({ withinMs: Math.max(0, endAt - clock.now()) })
  }
  return report.cut ? { ...report, nextDueInMs: 0 } : report
}

const drainSettings: Partial<EngineSettings> = {
  // every flush is a round trip that counts against the platform's limits
  flushMs: 1_000,
  // nothing is woken during a drain: the lease goes back at once
  lingerMs: 0,
}
