import type { Clock, Log, Ports } from './ports.ts'

/** The clock of the process. */
export const systemClock: Clock = {
  now: () => Date.now(),
  setTimeout: (fn, ms) => setTimeout(fn, ms),
  clearTimeout: (handle) => clearTimeout(handle as ReturnType<typeof setTimeout>),
}

/** A log that drops everything. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }

/**
 * The real ports.
 *
 * @param log where log lines go; defaults to nowhere
 */
export function createSystemPorts(log: Log = silentLog): Ports {
  return {
    clock: systemClock,
    random: Math.random,
    log,
    // A bare reference would lose its `this` on workerd ("Illegal invocation").
    fetch: (input, init) => globalThis.fetch(input, init),
  }
}
