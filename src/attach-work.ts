import type { Ports } from './ports.ts'
import type { WorkOptions } from './queues/work/options.ts'
import type { Forwarder } from './wakes/forwarder.ts'
import { createPacer } from './wakes/poll-timer.ts'

/** Ties a queue's worker to the forwarder's wakes, and to polls where none arrive. */
export function createWorkWakes(
  forwarder: () => Forwarder,
  options: { ports: Ports; pollMinMs?: number; pollMaxMs?: number },
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
