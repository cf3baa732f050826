import type { Ports } from './ports.ts'
import type { Db } from './db/port.ts'
import { createQueueNumbers, type ClaimWait } from './queues/claim-or-wait.ts'
import type { WorkOptions } from './queues/work/options.ts'
import type { Forwarder } from './wakes/forwarder.ts'
import { createPacer } from './wakes/poll-timer.ts'

interface Pace {
  ports: Ports
  pollMinMs?: number
  pollMaxMs?: number
}

/** Ties a queue's worker to the forwarder's wakes, and to polls where none arrive. */
export function createWorkWakes(
  forwarder: () => Forwarder,
  options: Pace,
): NonNullable<WorkOptions['wakes']> {
  return (subject) => {
    const modes = forwarder()
    const wake = modes.subscribeWakes([subject])
    const pacer = createPacer({ ...options, modes })
    return {
      wait({ signal, timeoutMs }) {
        const dueAt = timeoutMs === undefined ? undefined : options.ports.clock.now() + timeoutMs
        return pacer.wait({ wake, signal, dueAt })
      },
      close: () => wake.close(),
    }
  }
}

/** Somebody waits, and for half a minute at most: without wakes a message is not to lie for longer. */
const longestClaimPollMs = 4000

/** Ties claims that wait to the forwarder's wakes, and to polls where none arrive. */
export function createClaimWait(db: Db, forwarder: () => Forwarder, pace: Pace): ClaimWait {
  const pollMaxMs = Math.min(pace.pollMaxMs ?? longestClaimPollMs, longestClaimPollMs)
  const wakesOf = createWorkWakes(forwarder, { ...pace, pollMaxMs })
  const numberOf = createQueueNumbers(db)
  return {
    clock: pace.ports.clock,
    attach: async (queue) => wakesOf(`q${await numberOf(queue)}`),
  }
}
