// Everything in one process: the embedded database (or DATABASE_URL), HTTP API, forwarder and delivery.
import { createSystemPorts } from '../src/system-ports.ts'
import { warnOfUnknownSettings } from '../src/unknown-settings.ts'
import { failureLine } from '../src/node/fail.ts'
import { createTerminalLog } from '../src/node/log.ts'
import { startDev } from '../src/node/run-dev.ts'
import { untilStopped } from '../src/node/until-stopped.ts'
import { readSettings } from '../src/settings.ts'

try {
  const settings = readSettings({ MILLRACE_ALLOW_INSECURE_TARGETS: '1', ...process.env })
  const ports = createSystemPorts(createTerminalLog())
  warnOfUnknownSettings(process.env, ports.log)
  const running = await startDev({ settings, ports, say: (line) => console.log(line) })
  await untilStopped()
  console.log('Stopping …')
  await running.stop()
} catch (error) {
  console.error(failureLine(error))
  process.exitCode = 1
}
