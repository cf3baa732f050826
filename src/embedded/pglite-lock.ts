import { mkdirSync, realpathSync } from 'node:fs'
import { MillraceError } from '../errors/millrace-error.ts'
import { tryPidLock } from './pid-lock.ts'

/**
 * Takes a PGlite data folder for this process alone, and makes it if missing.
 * PGlite itself lets two processes open one folder, and loses rows in silence.
 *
 * The lock ends with `release`, with a normal exit of the process, or with its
 * death. It covers processes of one machine, not those of two that share a disk.
 *
 * @param dataDir the folder that is handed to PGlite; the lock file lies beside it
 * @throws DATA_FOLDER_IN_USE when another process (or this one) holds it; `details.pid` says which
 */
export function lockPgliteFolder(dataDir: string): { release(): void } {
  mkdirSync(dataDir, { recursive: true })
  // One folder has many spellings, and each would be a lock of its own.
  const folder = realpathSync(dataDir)
  const lock = tryPidLock(`${folder}.lock`)
  if (!lock.held) {
    throw new MillraceError(
      'DATA_FOLDER_IN_USE',
      `The data folder ${folder} is in use by process ${lock.pid}; PGlite can serve one process only. Stop that one, or choose another MILLRACE_DATA_DIR.`,
      { details: { pid: lock.pid, dataDir: folder } },
    )
  }
  const { release } = lock
  process.once('exit', release)
  return {
    release() {
      process.removeListener('exit', release)
      release()
    },
  }
}
