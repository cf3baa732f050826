import { spawn } from 'node:child_process'

/** The system user a program runs as; empty for the own one. */
export interface Identity {
  uid?: number
  gid?: number
}

/** How a program ended, and the last of what it printed. */
export interface Outcome {
  code: number | null
  output: string
}

const KEPT_OUTPUT = 4096

/**
 * Runs a program to its end.
 *
 * The working folder is `/`, because that of the caller may be closed to the
 * user the program runs as, and messages are forced to English.
 */
export function runProgram(
  file: string,
  args: readonly string[],
  options: Identity & { timeoutMs: number },
): Promise<Outcome> {
  const { timeoutMs, ...identity } = options
  return new Promise((resolve) => {
    let output = ''
    const keep = (chunk: Buffer): void => {
      output = (output + chunk.toString('utf8')).slice(-KEPT_OUTPUT)
    }
    const child = spawn(file, args, {
      ...identity,
      cwd: '/',
      env: programEnvironment(),
      timeout: timeoutMs,
      stdio: ['ignore', 'pipe', 'pipe'],
      windowsHide: true,
    })
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    child.on('error', (error) => resolve({ code: null, output: error.message }))
    child.on('close', (code) => resolve({ code, output: output.trim() }))
  })
}

/** The environment without PG* variables: PGDATA, PGPORT and the like would steer our server. */
export function programEnvironment(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('PG') && !name.startsWith('LC_'),
  )
  return { ...Object.fromEntries(own), LC_ALL: 'C' }
}
