import { openDatabase, type OpenedDatabase } from '../node/open-database.ts'
import { readSettings, type Settings } from '../settings.ts'
import { silentLog } from '../system-ports.ts'
import type { Io } from './io.ts'
import { createStyle } from './style.ts'

/**
 * Opens the database that the environment names, and closes it after the work.
 *
 * @param applicationName what `pg_stat_activity` shows
 * @throws INVALID_SETTING, DATABASE_UNAVAILABLE, DATA_FOLDER_IN_USE
 */
export async function withDatabase(
  io: Io,
  applicationName: string,
  work: (opened: OpenedDatabase, settings: Settings) => Promise<void>,
): Promise<void> {
  const settings = readSettings(io.env)
  const style = createStyle(io.stderr, io.env)
  const progress = (line: string): void => {
    if (io.stderr.isTTY) io.stderr.write(`${style.dim(line)}\n`)
  }
  const opened = await openDatabase(settings, { log: silentLog, applicationName, progress })
  try {
    await work(opened, settings)
  } finally {
    await opened.close()
  }
}
