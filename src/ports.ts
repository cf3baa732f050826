/** What {@link Clock.setTimeout} returns; only good for {@link Clock.clearTimeout}. */
export type TimerHandle = object | number

/**
 * Local time and local waits. Right and wrong are decided by the database's
 * clock (Q6); this one only says how long to sleep and what to print.
 */
export interface Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  now(): number
  /** Calls `fn` once, `ms` milliseconds from now. */
  setTimeout(fn: () => void, ms: number): TimerHandle
  /** Forgets a timer; one that ran or was cleared already is no error. */
  clearTimeout(handle: TimerHandle): void
}

/**
 * Structured logging: facts first, then a sentence. pino fits as it is.
 * The facts never hold payloads, secrets or connection strings.
 */
export interface Log {
  debug(facts: object, message: string): void
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
}

/** Everything the rooms need of the world besides the database, built once in workers/ or in a test. */
export interface Ports {
  clock: Clock
  /** A number from 0 (inclusive) to 1 (exclusive), for jitter. Never for secrets or tokens. */
  random: () => number
  log: Log
  fetch: typeof globalThis.fetch
}
