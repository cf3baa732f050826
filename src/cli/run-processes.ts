import { createJsonLog, createTerminalLog } from '../node/log.ts'
import { startDev } from '../node/run-dev.ts'
import { startForwarder } from '../node/run-forwarder.ts'
import { startServe } from '../node/run-serve.ts'
import { readSettings } from '../settings.ts'
import { createSystemPorts } from '../system-ports.ts'
import { warnOfUnknownSettings } from '../unknown-settings.ts'
import type { Io } from './io.ts'

/** Everything in one process, until it is told to stop. */
export async function runDev(io: Io, flags: { port?: number }): Promise<void> {
  const env = { MILLRACE_ALLOW_INSECURE_TARGETS: '1', ...envOf(io, flags.port) }
  const say = (line: string): void => io.stdout.write(`${line}\n`)
  const ports = createSystemPorts(createTerminalLog((line) => io.stderr.write(`${line}\n`)))
  warnOfUnknownSettings(io.env, ports.log)
  const running = await startDev({ settings: readSettings(env), ports, say })
  await stopped(io.signal)
  say('Stopping …')
  await running.stop()
}

/** The API as a process, until it is told to stop. */
export async function runServe(
  io: Io,
  flags: { port?: number; host?: string; deliver?: boolean },
): Promise<void> {
  const { host, deliver } = flags
  const ports = jsonPorts(io)
  warnOfUnknownSettings(io.env, ports.log)
  const settings = readSettings(envOf(io, flags.port))
  const running = await startServe({ settings, ports, host, deliver })
  await stopped(io.signal)
  ports.log.info({ signal: String(io.signal.reason) }, 'stopping')
  await running.stop()
}

/**
 * The forwarder as a process, until it is told to stop.
 *
 * @throws WRONG_ENVIRONMENT also later, when another environment adopts the database
 */
export async function runForward(io: Io): Promise<void> {
  const ports = jsonPorts(io)
  warnOfUnknownSettings(io.env, ports.log)
  const running = await startForwarder(readSettings(io.env), ports)
  try {
    await Promise.race([stopped(io.signal), running.fenced])
    ports.log.info({ signal: String(io.signal.reason) }, 'stopping')
  } finally {
    await running.stop()
  }
}

function envOf({ env }: Io, port: number | undefined): Io['env'] {
  return port === undefined ? env : { ...env, PORT: String(port) }
}

function jsonPorts(io: Io) {
  return createSystemPorts(createJsonLog({ level: io.env.MILLRACE_LOG_LEVEL, to: io.stdout }))
}

function stopped(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
