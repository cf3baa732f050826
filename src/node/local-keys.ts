import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** The file in the data folder that holds the root key of a development server. */
export const rootKeyFile = 'root-key'
/** The file in the data folder that holds the encryption key of a development server. */
export const encryptionKeyFile = 'encryption-key'

/** A key kept in the data folder, made at the first start and readable by its owner alone. */
export async function localKey(dataDir: string, file: string, prefix: string): Promise<string> {
  const known = await readLocalKey(dataDir, file)
  if (known !== null) return known
  await mkdir(dataDir, { recursive: true })
  const key = `${prefix}${randomBytes(24).toString('base64url')}`
  try {
    await writeFile(join(dataDir, file), `${key}\n`, { mode: 0o600, flag: 'wx' })
    return key
  } catch (error) {
    // another process that starts on the same folder was first
    const theirs = await readLocalKey(dataDir, file)
    if (theirs === null) throw error
    return theirs
  }
}

/** A key of the data folder; null when there is none. */
export async function readLocalKey(dataDir: string, file: string): Promise<string | null> {
  try {
    return (await readFile(join(dataDir, file), 'utf8')).trim() || null
  } catch {
    return null
  }
}
