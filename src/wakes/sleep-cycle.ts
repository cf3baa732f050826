import type { Ports } from '../ports.ts'
import { sleep } from '../sleep.ts'
import type { Agenda } from './agenda.ts'

/** When a forwarder lets its connection go, so that a database which nobody uses can sleep. */
export interface SleepOptions {
  /** After so long with nothing to do, and nothing due within as long. */
  afterMs: number
  /** It looks at least this often: what nobody rang for waits no longer. */
  maxMs: number
}

/** For so long after somebody rang, or the connection was lost at work, a database that does not answer is asked again at once. */
const insistMs = 60_000
/** As long for what was only due: nobody waits for it who would notice a minute. */
const insistWhenDueMs = 10_000
/** After a turn in vain, and twice as long after each further one. */
const firstNapMs = 60_000

/** Turns of being awake and asleep. */
export interface SleepCycle {
  /** This turn began because something was due or it was time to look; nobody wanted it. */
  readonly unasked: boolean
  /** Begins a turn awake; the signal aborts when there is no reason to be awake any more. */
  wakeUp(end: AbortSignal): AbortSignal
  /** The connection stands. */
  stood(): void
  /** There is no connection, or none any more. Ends the turn, unless there is a reason to try again at once. */
  failed(): void
  /** Resolves when something falls due, on a `stir`, after `maxMs`, or at the end. */
  nap(end: AbortSignal): Promise<void>
  /** Somebody wants wakes, or has word of something. Ends a nap, and makes a turn insist. */
  stir(): void
}

/** What {@link createSleepCycle} takes. */
export interface SleepCycleSetup extends SleepOptions {
  clock: Ports['clock']
  agenda: Agenda
  /** Called at the end of each turn awake, before the connection is let go. */
  onSleep: () => void
}

/** One time of being awake. */
interface Turn {
  awake: AbortController
  end: AbortSignal
  /** Its idleness is waited for. */
  watched: boolean
  /** See {@link SleepCycle.unasked}. */
  unasked: boolean
}

export function createSleepCycle(setup: SleepCycleSetup): SleepCycle {
  const { clock, agenda } = setup
  let turn: Turn = { awake: new AbortController(), end: AbortSignal.abort(), watched: true, unasked: false }
  /** Aborts when a nap is over before its time; undefined before the first. */
  let asleep: AbortController | undefined
  let insistUntil = 0
  let standing = false
  let failures = 0

  const insist = (ms = insistMs): void => void (insistUntil = clock.now() + ms)

  function endTurn({ awake }: Turn): void {
    if (awake.signal.aborted) return
    asleep = new AbortController()
    setup.onSleep()
    awake.abort()
  }

  /** From the moment the connection stands: that making it takes a while is not idleness. */
  function watchIdle(mine: Turn): void {
    if (mine.watched) return
    mine.watched = true
    // a turn is long enough to look at everything
    agenda.active()
    void awaitIdle(setup, AbortSignal.any([mine.end, mine.awake.signal])).then(() => {
      if (!mine.end.aborted) endTurn(mine)
    })
  }

  /** A database that refuses is asked less and less often, but what is due there is not given up. */
  function napMs(): number {
    if (failures > 0) return Math.min(setup.maxMs, firstNapMs * 2 ** (failures - 1))
    return Math.min(agenda.nextDueAt - clock.now(), agenda.hasLoops ? setup.maxMs : Infinity)
  }

  return {
    get unasked() {
      return turn.unasked
    },
    wakeUp(end) {
      const unasked = asleep !== undefined && !asleep.signal.aborted
      turn = { awake: new AbortController(), end, watched: false, unasked }
      standing = false
      insist(unasked ? insistWhenDueMs : insistMs)
      return AbortSignal.any([end, turn.awake.signal])
    },
    stood() {
      standing = true
      failures = 0
      watchIdle(turn)
    },
    failed() {
      if (standing) {
        standing = false
        turn.unasked = false
        insist()
        // nothing is lost by it that the next look would not find
        if (agenda.resting) endTurn(turn)
      } else if (clock.now() >= insistUntil) {
        failures += 1
        endTurn(turn)
      }
    },
    nap: (end) =>
      sleepLong(clock, clock.now() + napMs(), AbortSignal.any(asleep ? [end, asleep.signal] : [end])),
    stir() {
      insist()
      turn.unasked = false
      asleep?.abort()
    },
  }
}

/** Resolves once nothing has been to do for `afterMs`, and nothing is due for as long; or at the end. */
function awaitIdle({ clock, agenda, afterMs }: SleepCycleSetup, end: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    let timer: ReturnType<typeof clock.setTimeout> | undefined
    const disarm = (): void => {
      if (timer !== undefined) clock.clearTimeout(timer)
      timer = undefined
    }
    const settle = (): void => {
      disarm()
      off()
      end.removeEventListener('abort', settle)
      resolve()
    }
    const check = (): void => {
      disarm()
      const now = clock.now()
      // at work, or soon again: the change that ends it is told
      if (agenda.nextDueAt - now <= afterMs) return
      const idleAt = agenda.activeAt + afterMs
      if (idleAt <= now) settle()
      else timer = clock.setTimeout(check, idleAt - now)
    }
    const off = agenda.onChange(check)
    end.addEventListener('abort', settle)
    if (end.aborted) settle()
    else check()
  })
}

/** As `sleep`, for longer than a timer can be set. */
async function sleepLong(clock: Ports['clock'], until: number, end: AbortSignal): Promise<void> {
  while (!end.aborted && clock.now() < until) await sleep(clock, until - clock.now(), end)
}
