import type { Log } from '../ports.ts'
import type { Settings } from '../settings.ts'
import { createSealer, type Sealer } from '../webhooks/seal.ts'

/** The sealer of the settings' keys; null, with a warning, where none is set. */
export async function openSealer(settings: Settings, log: Log): Promise<Sealer | null> {
  if (settings.encryptionKey !== null) {
    return createSealer({ current: settings.encryptionKey, previous: settings.previousEncryptionKeys })
  }
  log.warn({}, 'MILLRACE_ENCRYPTION_KEY is not set: webhook secrets lie in the database in the clear')
  return null
}
