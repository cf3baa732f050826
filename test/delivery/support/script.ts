import type { Clock } from '../../../src/ports.ts'
import type { StoredEvent } from '../../../src/streams/event.ts'
import type { Delivery } from '../../../src/webhooks/engine/engine.ts'
import { decideOutcome } from '../../../src/webhooks/outcome.ts'
import type { Cancel } from '../../../src/webhooks/cancel.ts'
import type { SendResult } from '../../../src/webhooks/sender.ts'

/** What a scripted endpoint does with one attempt. */
export type Act = 'ok' | 'slow' | 'bad' | 'busy' | 'reset' | 'timeout' | 'gone'

/** One attempt, such as the endpoint saw it. */
export interface Arrival {
  engine: string
  webhookId: string
  offset: number
  key: string | null
  /** What the endpoint made of it; abandoned: the sender broke it off before the answer. */
  verdict: 'ok' | 'failed' | 'abandoned'
  begunAt: number
  /** Position of begin and end in the one order of everything that happened. */
  begun: number
  ended: number
}

/** An endpoint in place of HTTP: it plays a script, and keeps a history of what arrived. */
export interface ScriptedEndpoint {
  history: Arrival[]
  /** How an event's attempts go, in turn; after the last one, all succeed. */
  plan(webhookId: string, offset: number): Act[]
  /** A delivery for an engine of that name. */
  deliveryFor(engine: string): (installationId: string) => Delivery
  /** Changes whenever something arrives or ends. */
  readonly tick: number
}

export function createScriptedEndpoint(
  clock: Clock,
  plan: (webhookId: string, offset: number) => Act[],
): ScriptedEndpoint {
  const history: Arrival[] = []
  const made = new Map<string, number>()
  let tick = 0

  function nextAct(webhookId: string, offset: number): Act {
    const id = `${webhookId} ${offset}`
    const at = made.get(id) ?? 0
    made.set(id, at + 1)
    return plan(webhookId, offset)[at] ?? 'ok'
  }

  async function attempt(engine: string, webhookId: string, event: StoredEvent, cancel: Cancel) {
    const act = nextAct(webhookId, event.offset)
    const arrival: Arrival = {
      engine,
      webhookId,
      offset: event.offset,
      key: event.key,
      verdict: 'abandoned',
      begunAt: clock.now(),
      begun: tick++,
      ended: -1,
    }
    history.push(arrival)
    const answered = await pause(clock, delays[act], cancel)
    arrival.ended = tick++
    if (!answered) return failure('aborted')
    const result = results[act]
    arrival.verdict = result.kind === 'answer' && result.status === 200 ? 'ok' : 'failed'
    return result
  }

  return {
    history,
    plan,
    get tick() {
      return tick
    },
    deliveryFor: (engine) => () => ({
      attempt: (webhook, event, cancel) => attempt(engine, webhook.id, event, cancel),
      judge: (webhook, _event, attempt, result) =>
        decideOutcome({
          result,
          attempt,
          maxAttempts: webhook.maxAttempts,
          scheduleMs: webhook.scheduleMs ?? undefined,
          jitterPercent: 0,
          random: Math.random,
          now: () => new Date(clock.now()),
        }),
    }),
  }
}

const delays: Record<Act, number> = { ok: 1, slow: 120, bad: 1, busy: 1, reset: 1, timeout: 150, gone: 1 }

function answer(status: number, retryAfter: string | null = null): SendResult {
  return { kind: 'answer', status, retryAfter, body: `status ${status}`, durationMs: 1 }
}

function failure(reason: 'aborted' | 'reset' | 'timeout'): SendResult {
  return { kind: 'error', reason, message: reason, durationMs: 1 }
}

const results: Record<Act, SendResult> = {
  ok: answer(200),
  slow: answer(200),
  bad: answer(400),
  busy: answer(429, '0'),
  reset: failure('reset'),
  timeout: failure('timeout'),
  gone: answer(410),
}

/** False when it was cancelled before. */
function pause(clock: Clock, ms: number, cancel: Cancel): Promise<boolean> {
  return new Promise((resolve) => {
    if (cancel.cancelled) return resolve(false)
    const timer = clock.setTimeout(() => done(true), ms)
    const abort = (): void => done(false)
    const done = (answered: boolean): void => {
      clock.clearTimeout(timer)
      cancel.delete(link)
      resolve(answered)
    }
    const link = cancel.add(abort)
  })
}
