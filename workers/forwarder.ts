// The worker for a VM: one LISTEN connection, and the delivery of webhooks. Needs DATABASE_URL.
import { exitCodeOf, failureLine } from '../src/node/fail.ts'
import { createJsonLog } from '../src/node/log.ts'
import { startForwarder } from '../src/node/run-forwarder.ts'
import { untilStopped } from '../src/node/until-stopped.ts'
import { readSettings } from '../src/settings.ts'
import { createSystemPorts } from '../src/system-ports.ts'
import { warnOfUnknownSettings } from '../src/unknown-settings.ts'

try {
  const ports = createSystemPorts(createJsonLog())
  warnOfUnknownSettings(process.env, ports.log)
  const running = await startForwarder(readSettings(process.env), ports)
  try {
    const signal = await Promise.race([untilStopped(), running.fenced])
    ports.log.info({ signal }, 'stopping')
  } finally {
    await running.stop()
  }
} catch (error) {
  console.error(failureLine(error))
  process.exitCode = exitCodeOf(error)
}
