import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { tryPidLock } from './pid-lock.ts'

/** One of those who use the server of a data folder. */
export interface User {
  /** Leaves; returns whether nobody else is left. Call it while holding the folder's start lock. */
  leave(): boolean
}

/**
 * Writes down that this process uses the server, so that the last to leave stops it, whoever started it. A
 * process that was killed does not count.
 */
export function joinUsers(dataDir: string): User {
  const folder = join(dataDir, 'users')
  mkdirSync(folder, { recursive: true })
  const lock = tryPidLock(join(folder, `${process.pid}-${randomUUID()}`))
  return {
    leave() {
      if (lock.held) lock.release()
      return readdirSync(folder).every((name) => isGone(join(folder, name)))
    },
  }
}

/** Whoever can be locked out is not there; their mark goes. */
function isGone(path: string): boolean {
  const lock = tryPidLock(path)
  if (lock.held) lock.release()
  return lock.held
}
