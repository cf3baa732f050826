import { invalidInput } from '../errors/millrace-error.ts'
import type { Ports } from '../ports.ts'
import type { Agenda } from './agenda.ts'
import type { WakeMode, WakeModes } from './modes.ts'
import type { WakeSignal } from './wake-signals.ts'

/** Options of {@link createPacer}. */
export interface PacerOptions {
  ports: Pick<Ports, 'clock' | 'random'>
  /** Whether wakes arrive; a forwarder, or a fixed mode where there is none. */
  modes: Pick<WakeModes, 'mode' | 'onMode'>
  /** How long after activity the first poll comes, at most. Default 1000. */
  pollMinMs?: number
  /** How far the doubling of idle polls goes. Default 60000. */
  pollMaxMs?: number
  /**
   * For a loop of the process: what it waits for is noted here, and while the forwarder sleeps it is not begun
   * before the connection stands again, whatever is due. Default: it is somebody's own wait.
   */
  agenda?: Agenda
}

/** What a wait of a {@link Pacer} can be for. */
export interface PacerWait {
  wake: WakeSignal
  /** Clock milliseconds at which something is due; absent, nothing is. */
  dueAt?: number
  signal?: AbortSignal
}

/** Says to one loop when to look again. */
export interface Pacer {
  /**
   * Resolves `wake` when the wake's flag is up; `due` at `dueAt`; `poll` when it is time to look
   * without a reason, which never happens while wakes arrive; `aborted` at the end of the signal or the
   * wake, after which the pacer is of no more use.
   */
  wait(what: PacerWait): Promise<'wake' | 'due' | 'poll' | 'aborted'>
  /** There was something to do: the next polls come at the short interval again. */
  active(): void
}

const pollDefaults = { pollMinMs: 1000, pollMaxMs: 60_000 }

/**
 * Checks the pace of polls, as far as it is given.
 *
 * @throws INVALID_INPUT unless both are from 1 to 86400000, and the first is not above the second
 */
export function assertPolls(given: { pollMinMs?: number; pollMaxMs?: number }): void {
  for (const name of ['pollMinMs', 'pollMaxMs'] as const) {
    const value = given[name] ?? pollDefaults[name]
    if (!Number.isSafeInteger(value) || value < 1 || value > longestTimerMs)
      throw invalidInput(name, `must be a whole number from 1 to ${longestTimerMs}`)
  }
  const { pollMinMs = pollDefaults.pollMinMs, pollMaxMs = pollDefaults.pollMaxMs } = given
  if (pollMinMs > pollMaxMs)
    throw invalidInput('pollMinMs', `must not be above pollMaxMs: ${pollMinMs} and ${pollMaxMs}`)
}

/** setTimeout fires at once beyond 2^31 - 1 ms; a day is short of that, and re-armed when it ends. */
const longestTimerMs = 86_400_000

/**
 * Paces one loop. While wakes arrive nothing is polled: with nothing due there is not even a timer.
 * In every other mode but `sleeping` it polls, first after `pollMinMs`, then in doubling intervals up to
 * `pollMaxMs`, each shortened by up to a fifth so that a thousand loops do not poll in step.
 */
export function createPacer(options: PacerOptions): Pacer {
  const { ports, modes, pollMinMs = pollDefaults.pollMinMs, pollMaxMs = pollDefaults.pollMaxMs } = options
  const seat = options.agenda?.join()
  let intervalMs = pollMinMs
  const pollAfter = (): number => intervalMs * (1 - ports.random() / 5)
  return {
    async wait(what) {
      let pollAt = ports.clock.now() + pollAfter()
      const onMode = (): void => {
        intervalMs = pollMinMs
        pollAt = ports.clock.now() + pollAfter()
      }
      const onRest = (): void => seat?.rest(what.dueAt ?? Infinity)
      const sleeps = seat !== undefined
      const outcome = await waitUntil({ ports, modes, what, sleeps, pollAt: () => pollAt, onMode, onRest })
      if (outcome === 'aborted') seat?.leave()
      else seat?.busy()
      if (outcome === 'poll') intervalMs = Math.min(intervalMs * 2, pollMaxMs)
      if (outcome === 'wake') intervalMs = pollMinMs
      return outcome
    },
    active() {
      intervalMs = pollMinMs
      seat?.active()
    },
  }
}

interface Waiting {
  ports: PacerOptions['ports']
  modes: PacerOptions['modes']
  what: PacerWait
  /** As long as the forwarder does. */
  sleeps: boolean
  pollAt: () => number
  onMode: () => void
  /** Called when it is not over at once. */
  onRest: () => void
}

type Outcome = Awaited<ReturnType<Pacer['wait']>>

function waitUntil(waiting: Waiting): Promise<Outcome> {
  const { ports, modes, what } = waiting
  return new Promise((resolve) => {
    let timer: ReturnType<typeof ports.clock.setTimeout> | undefined
    const disarm = (): void => {
      if (timer !== undefined) ports.clock.clearTimeout(timer)
      timer = undefined
    }
    const check = (): void => {
      disarm()
      const decision = decide(waiting)
      if (typeof decision === 'string') finish(decision)
      else if (decision.inMs < Infinity) {
        timer = ports.clock.setTimeout(check, Math.min(decision.inMs, longestTimerMs))
      }
    }
    const cleanUps = [
      what.wake.onRaise(check),
      modes.onMode(() => {
        waiting.onMode()
        check()
      }),
      () => what.signal?.removeEventListener('abort', check),
      disarm,
    ]
    let over = false
    const finish = (outcome: Outcome): void => {
      over = true
      for (const cleanUp of cleanUps) cleanUp()
      resolve(outcome)
    }
    what.signal?.addEventListener('abort', check)
    check()
    if (!over) waiting.onRest()
  })
}

/** What is so now, or in how many milliseconds to ask again (Infinity: not before somebody rings). */
function decide({ ports, modes, what, sleeps, pollAt }: Waiting): Outcome | { inMs: number } {
  if (what.signal?.aborted || what.wake.closed || modes.mode === 'closed') return 'aborted'
  // the agenda has it, and the forwarder comes back for it
  if (sleeps && modes.mode === 'sleeping') return { inMs: Infinity }
  if (what.wake.take()) return 'wake'
  const now = ports.clock.now()
  const dueAt = what.dueAt ?? Infinity
  if (dueAt <= now) return 'due'
  const nextPoll = polls(modes.mode) ? pollAt() : Infinity
  if (nextPoll <= now) return 'poll'
  return { inMs: Math.min(dueAt, nextPoll) - now }
}

function polls(mode: WakeMode): boolean {
  return mode === 'starting' || mode === 'polling' || mode === 'degraded'
}
