import type { Ports } from './ports.ts'
import type { AttachWake } from './streams/subscribe.ts'
import type { Forwarder } from './wakes/forwarder.ts'
import { createPacer } from './wakes/poll-timer.ts'

/** Ties subscriptions to the forwarder's wakes, and to polls where none arrive. */
export function createAttach(
  forwarder: () => Forwarder,
  options: { ports: Ports; pollMinMs?: number; pollMaxMs?: number },
): AttachWake {
  return (streamId) => {
    const modes = forwarder()
    const wake = modes.subscribeWakes(streamId === null ? 'all' : [`s${streamId}`])
    const pacer = createPacer({ ...options, modes })
    return {
      async wait(signal, withinMs) {
        const dueAt = withinMs === undefined ? undefined : options.ports.clock.now() + withinMs
        const why = await pacer.wait({ wake, signal, dueAt })
        return why === 'due' ? 'poll' : why
      },
      active: () => pacer.active(),
      close: () => wake.close(),
    }
  }
}
