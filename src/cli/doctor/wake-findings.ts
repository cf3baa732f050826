import type { Db } from '../../db/port.ts'
import type { Settings } from '../../settings.ts'
import { createSystemPorts } from '../../system-ports.ts'
import { createForwarder, type Forwarder } from '../../wakes/forwarder.ts'
import type { WakeMode } from '../../wakes/modes.ts'
import type { Finding } from './finding.ts'

/** Listens as a forwarder does, and sees whether what it sends itself comes back. */
export async function wakes(db: Db, settings: Settings, signal: AbortSignal): Promise<Finding[]> {
  const forwarder = createForwarder({
    connect: (aborted) => db.connectDirect({ signal: aborted }),
    schema: settings.schema,
    ports: createSystemPorts(),
    listen: settings.listen && db.capabilities.listen,
  })
  const startedAt = performance.now()
  try {
    const known = firstMode(forwarder, signal)
    forwarder.start()
    return [toFinding(await known, forwarder, performance.now() - startedAt)]
  } finally {
    await forwarder.close()
  }
}

function firstMode(forwarder: Forwarder, signal: AbortSignal): Promise<WakeMode> {
  return new Promise((resolve) => {
    forwarder.onMode(resolve)
    signal.addEventListener('abort', () => resolve(forwarder.mode), { once: true })
  })
}

function toFinding(mode: WakeMode, { lastError }: Forwarder, tookMs: number): Finding {
  const topic = 'wakes'
  const why = lastError === undefined ? '' : `: ${lastError.message}`
  if (mode === 'listening') {
    return {
      level: 'ok',
      topic,
      text: `listening: connected and heard its own call in ${tookMs.toFixed(0)} ms`,
    }
  }
  if (mode === 'polling') return { level: 'warn', topic, text: `polling, so everything comes later${why}` }
  return { level: 'fail', topic, text: `${mode}${why}` }
}
