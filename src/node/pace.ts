import type { Ports } from '../ports.ts'
import type { Forwarder } from '../wakes/forwarder.ts'
import { createPacer, type Pacer } from '../wakes/poll-timer.ts'
import { createWakeRegistry } from '../wakes/wake-signals.ts'

/** How often a loop looks where no wakes arrive. */
export interface PollSettings {
  /** How long after activity the first look comes, at most. */
  minMs: number
  /** How far the doubling goes. */
  maxMs: number
}

/** From a second to a minute. */
export const defaultPoll: PollSettings = { minMs: 1_000, maxMs: 60_000 }

/** What {@link createPace} takes. */
export interface PaceSetup {
  forwarder: Pick<Forwarder, 'mode' | 'onMode' | 'agenda'>
  ports: Pick<Ports, 'clock' | 'random'>
  poll: PollSettings
  /** Its abort ends every wait. */
  signal: AbortSignal
}

/** Says to one loop of the process when to look again. */
export interface Pace extends Pick<Pacer, 'active'> {
  /** Resolves when poked, at `dueAt` (clock milliseconds), when it is time to poll, or at the end. */
  wait(dueAt: number | undefined): Promise<'wake' | 'due' | 'poll' | 'aborted'>
  /** Ends the wait now, or the next one at once. */
  poke(): void
  /** Forgets pokes that have ended no wait: a look that begins now finds what they were for. */
  settle(): void
}

/** Ties the forwarder's mode, the due times and the polls together for one loop. */
export function createPace({ forwarder, ports, poll, signal }: PaceSetup): Pace {
  const registry = createWakeRegistry(ports.clock)
  const wake = registry.subscribe('all', { signal })
  const { minMs: pollMinMs, maxMs: pollMaxMs } = poll
  const pacer = createPacer({ ports, modes: forwarder, pollMinMs, pollMaxMs, agenda: forwarder.agenda })
  return {
    wait: (dueAt) => pacer.wait({ wake, dueAt, signal }),
    poke: () => registry.raise('all'),
    settle: () => void wake.take(),
    active: pacer.active,
  }
}
