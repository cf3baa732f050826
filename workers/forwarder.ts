// The worker for a VM: one LISTEN connection, and the delivery of webhooks. Needs DATABASE_URL.
import { failureLine } from '../src/node/fail.ts'
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
  const signal = await untilStopped()
  ports.log.info({ signal }, 'stopping')
  await running.stop()
} catch (error) {
  console.error(failureLine(error))
  process.exitCode = 1
}
