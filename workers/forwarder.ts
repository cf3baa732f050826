// The worker for a VM: one LISTEN connection, and the delivery of webhooks. Needs DATABASE_URL.
import { exitCodeOf, failureLine } from '../src/node/fail.ts'
import { createJsonLog } from '../src/node/log.ts'
import { startForwarder } from '../src/node/run-forwarder.ts'
import { untilStopped } from '../src/node/until-stopped.ts'
import { readSettings } from '../src/settings.ts'
import { createSystemPorts } from '../src/system-ports.ts'

try {
  // before anybody is told that it delivers: a signal that nobody heeds ends the process as it is
  const stopped = untilStopped()
  const ports = createSystemPorts(createJsonLog())
  const running = await startForwarder(readSettings(process.env), ports)
  try {
    const signal = await Promise.race([stopped, running.fenced])
    ports.log.info({ signal }, 'stopping')
  } finally {
    await running.stop()
  }
} catch (error) {
  console.error(failureLine(error))
  process.exitCode = exitCodeOf(error)
}
