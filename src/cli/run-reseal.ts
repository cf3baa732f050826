import { MillraceError } from '../errors/millrace-error.ts'
import { resealSecrets } from '../webhooks/reseal-secrets.ts'
import { createSealer } from '../webhooks/seal.ts'
import type { Io } from './io.ts'
import { createStyle } from './style.ts'
import { withDatabase } from './with-database.ts'

/**
 * Seals all webhook secrets under the current key. Returns the exit code: 1 when some could not be opened.
 *
 * @throws INVALID_SETTING without MILLRACE_ENCRYPTION_KEY
 */
export async function runReseal(io: Io): Promise<number> {
  let unreadable: string[] = []
  await withDatabase(io, 'millrace reseal', async ({ db, description }, settings) => {
    if (settings.encryptionKey === null) {
      const details = { setting: 'MILLRACE_ENCRYPTION_KEY' }
      throw new MillraceError('INVALID_SETTING', 'MILLRACE_ENCRYPTION_KEY is not set', { details })
    }
    const { encryptionKey: current, previousEncryptionKeys: previous } = settings
    const report = await resealSecrets(db, await createSealer({ current, previous }), { signal: io.signal })
    unreadable = report.unreadable
    const style = createStyle(io.stdout, io.env)
    const what = `${report.resealed} secrets sealed anew, ${report.current} already were under this key`
    const mark = unreadable.length === 0 ? style.green('✓') : style.yellow('!')
    io.stdout.write(`${mark} ${what}: ${description}\n`)
  })
  if (unreadable.length === 0) return 0
  const style = createStyle(io.stderr, io.env)
  io.stderr.write(`${style.red('✗')} sealed under a key that is not given here: ${unreadable.join(', ')}\n`)
  return 1
}
