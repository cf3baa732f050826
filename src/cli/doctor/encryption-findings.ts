import type { Db } from '../../db/port.ts'
import type { Settings } from '../../settings.ts'
import { countUnreadable } from '../../webhooks/readable-secrets.ts'
import { createSealer } from '../../webhooks/seal.ts'
import type { Finding } from './finding.ts'

/** Whether secrets are sealed, and can be opened. A development server keeps its own key; one on a database of yours needs to be given one. */
export async function encryption(db: Db, settings: Settings): Promise<Finding[]> {
  const topic = 'encryption'
  const { databaseUrl, encryptionKey, previousEncryptionKeys } = settings
  if (databaseUrl === null) return []
  const sealer =
    encryptionKey === null
      ? null
      : await createSealer({ current: encryptionKey, previous: previousEncryptionKeys })
  const unreadable = await countUnreadable(db, sealer?.keyIds ?? [])
  if (unreadable > 0) {
    const key = sealer === null ? 'is not set' : 'is not the key that they were sealed under'
    const text = `MILLRACE_ENCRYPTION_KEY ${key}: secrets of webhooks cannot be opened (${unreadable}), and nothing is delivered to them`
    return [{ level: 'fail', topic, text }]
  }
  if (sealer !== null) return []
  const text = 'MILLRACE_ENCRYPTION_KEY is not set: webhook secrets lie in the database in the clear'
  return [{ level: 'warn', topic, text }]
}
