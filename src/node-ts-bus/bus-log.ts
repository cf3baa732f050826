import type { Logger } from '@node-ts/bus-core'
import type { Log } from '../ports.ts'

/** A log that goes to the bus's logger, which comes only when the bus is built. */
export interface BusLog extends Log {
  attach(logger: Logger): void
}

/** Drops what is logged before `attach`. */
export function createBusLog(): BusLog {
  let target: Logger | undefined
  return {
    attach(logger) {
      target = logger
    },
    debug: (facts, message) => target?.debug(message, facts),
    info: (facts, message) => target?.info(message, facts),
    warn: (facts, message) => target?.warn(message, facts),
    error: (facts, message) => target?.error(message, facts),
  }
}
