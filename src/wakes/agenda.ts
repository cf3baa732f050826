import type { Clock } from '../ports.ts'

/** The place of one loop, or of one reader, in the {@link Agenda}. Taken busy. */
export interface Seat {
  /** Is at work, or needs wakes at once. */
  busy(): void
  /** Does nothing before `dueAt` (clock milliseconds; Infinity: before it is woken). */
  rest(dueAt: number): void
  /** There was something to do. */
  active(): void
  leave(): void
}

/** What the loops of a process are at, and when the next of them has something to do. */
export interface Agenda {
  /** @param kind `reader`: has nothing due of its own, it only wants wakes. Default `loop`. */
  join(kind?: 'loop' | 'reader'): Seat
  /** Nobody is at work. */
  readonly resting: boolean
  /** When the earliest is due, in clock milliseconds; Infinity: nothing is. */
  readonly nextDueAt: number
  /** When there last was something to do, or word of it. */
  readonly activeAt: number
  /** Whether there is a loop at all, for which to look after a while without being told to. */
  readonly hasLoops: boolean
  /** Word came that there may be something to do. */
  active(): void
  /** Calls `fn` after each change; returns the function that ends that. */
  onChange(fn: () => void): () => void
}

interface State {
  kind: 'loop' | 'reader'
  /** -Infinity: at work. */
  dueAt: number
}

export function createAgenda(clock: Clock): Agenda {
  const seats = new Set<State>()
  const listeners = new Set<() => void>()
  let activeAt = clock.now()
  const changed = (): void => {
    for (const listener of Array.from(listeners)) listener()
  }
  const active = (): void => {
    activeAt = clock.now()
    changed()
  }
  const nextDueAt = (): number => Math.min(Infinity, ...Array.from(seats, ({ dueAt }) => dueAt))
  return {
    join(kind = 'loop') {
      const state: State = { kind, dueAt: -Infinity }
      const set = (dueAt: number): void => {
        if (state.dueAt === dueAt) return
        state.dueAt = dueAt
        changed()
      }
      seats.add(state)
      changed()
      return {
        busy: () => set(-Infinity),
        rest: set,
        active,
        leave() {
          if (seats.delete(state)) changed()
        },
      }
    },
    get resting() {
      return nextDueAt() > -Infinity
    },
    get nextDueAt() {
      return nextDueAt()
    },
    get activeAt() {
      return activeAt
    },
    get hasLoops() {
      return Array.from(seats).some(({ kind }) => kind === 'loop')
    },
    active,
    onChange(fn) {
      const listener = (): void => fn()
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
