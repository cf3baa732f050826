import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, openSync, renameSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { MillraceError } from '../errors/millrace-error.ts'
import { program } from './postgres-package.ts'
import { readPostmaster } from './postmaster.ts'
import { programEnvironment, runProgram, type Identity } from './run-program.ts'

/** How to run the server of a cluster. */
export interface ServerOptions {
  clusterDir: string
  programs: string
  identity: Identity
  port: number
  /** The file that the server's own log goes to. */
  logFile: string
  /** Further settings of postgresql.conf. */
  settings: Record<string, string | number>
}

/** A server that this process has started. */
export interface ServerProcess {
  stop(): Promise<void>
}

/** Crash recovery of a big folder on a slow disk takes its time. */
const READY_MS = 120_000
const STOP_SECONDS = 30
const MAX_LOG_BYTES = 8 * 1024 * 1024

/**
 * Starts the server and waits until it takes connections.
 *
 * It runs in a session of its own: else Ctrl-C in the terminal would end the
 * database at once, before its users have written down what they were doing.
 *
 * @returns the server, or `'port-taken'`
 * @throws DATABASE_UNAVAILABLE with the server's own words
 */
export async function startServer(options: ServerOptions): Promise<ServerProcess | 'port-taken'> {
  const { child, logStart } = spawnServer(options)
  const deadline = performance.now() + READY_MS
  while (performance.now() < deadline) {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) break
    const postmaster = await readPostmaster(options.clusterDir)
    if (postmaster?.pid === child.pid && postmaster.status === 'ready') {
      return { stop: once(() => stopServer(child, options)) }
    }
    await delay(15)
  }
  if (child.pid !== undefined && child.exitCode === null) child.kill('SIGQUIT')
  const said = await readFrom(options.logFile, logStart)
  if (said.includes('Address already in use')) return 'port-taken'
  throw new MillraceError('DATABASE_UNAVAILABLE', `The embedded Postgres did not start: ${gist(said)}`, {
    details: { log: options.logFile },
  })
}

function spawnServer(options: ServerOptions): { child: ChildProcess; logStart: number } {
  const { clusterDir, programs, identity, port, logFile } = options
  const settings = { ...options.settings, listen_addresses: '127.0.0.1', unix_socket_directories: '', port }
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const size = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0
  if (size > MAX_LOG_BYTES) renameSync(logFile, `${logFile}.1`)
  const log = openSync(logFile, 'a', 0o600)
  try {
    const child = spawn(program(programs, 'postgres'), ['-D', clusterDir, ...flags], {
      ...identity,
      cwd: '/',
      env: programEnvironment(),
      detached: true,
      stdio: ['ignore', log, log],
      windowsHide: true,
    })
    // A spawn that fails shows in `pid`; unheard, its event would end the process.
    child.on('error', () => {})
    child.unref()
    return { child, logStart: size > MAX_LOG_BYTES ? 0 : size }
  } finally {
    closeSync(log)
  }
}

async function stopServer(child: ChildProcess, options: ServerOptions): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await stopByControl(options)
}

/**
 * Ends open sessions and stops the server of a cluster; one that does not within its time is stopped as by a
 * crash, which loses nothing. One that is not running is fine.
 */
export async function stopByControl(
  options: Pick<ServerOptions, 'clusterDir' | 'programs' | 'identity'>,
): Promise<void> {
  for (const mode of ['fast', 'immediate']) {
    if ((await readPostmaster(options.clusterDir)) === undefined) return
    const { code } = await runProgram(
      program(options.programs, 'pg_ctl'),
      ['stop', '-D', options.clusterDir, '-m', mode, '-t', String(STOP_SECONDS)],
      { ...options.identity, timeoutMs: (STOP_SECONDS + 5) * 1000 },
    )
    if (code === 0) return
  }
}

async function readFrom(file: string, start: number): Promise<string> {
  const handle = await open(file, 'r')
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(64 * 1024), 0, 64 * 1024, start)
    return buffer.toString('utf8', 0, bytesRead)
  } finally {
    await handle.close()
  }
}

/** The lines that matter, without their time stamps. */
function gist(log: string): string {
  const lines = log.split('\n').map((line) => line.trim())
  const errors = lines.filter((line) => /FATAL:|PANIC:|HINT:|DETAIL:|error while loading/.test(line))
  const chosen = errors.length > 0 ? errors.slice(0, 4) : lines.filter((line) => line !== '').slice(-4)
  return (
    chosen.map((line) => line.replace(/^.*?(?=FATAL:|PANIC:|HINT:|DETAIL:)/, '')).join(' ') ||
    'no reason given.'
  )
}

function once(action: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined
  return () => (done ??= action())
}
