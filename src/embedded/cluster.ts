import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chown, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MillraceError } from '../errors/millrace-error.ts'
import { program } from './postgres-package.ts'
import { runProgram, type Identity } from './run-program.ts'

/** The superuser of every embedded cluster. */
export const SUPERUSER = 'postgres'

const INITDB_MS = 120_000

/** The password of the cluster, made at the first call; kept in a file that only its owner reads. */
export async function readOrMakePassword(dataDir: string): Promise<string> {
  const file = join(dataDir, 'password')
  const existing = await readFile(file, 'utf8').catch(() => '')
  if (existing.trim() !== '') return existing.trim()
  const password = randomBytes(24).toString('base64url')
  await writeFile(file, `${password}\n`, { mode: 0o600 })
  return password
}

/**
 * Makes the cluster unless it exists. It is made aside and renamed, so that a
 * start which was killed in between leaves no half cluster. Call only while
 * holding the start lock.
 *
 * @throws DATABASE_UNAVAILABLE with what `initdb` said
 */
export async function ensureCluster(
  clusterDir: string,
  options: { programs: string; password: string; identity: Identity },
): Promise<void> {
  if (existsSync(join(clusterDir, 'PG_VERSION'))) return
  const { programs, password, identity } = options
  const aside = `${clusterDir}.new`
  const passwordFile = `${clusterDir}.password`
  try {
    await rm(aside, { recursive: true, force: true })
    await mkdir(aside, { mode: 0o700 })
    await rm(passwordFile, { force: true })
    await writeFile(passwordFile, `${password}\n`, { mode: 0o600, flag: 'wx' })
    if (identity.uid !== undefined && identity.gid !== undefined) {
      await chown(aside, identity.uid, identity.gid)
      await chown(passwordFile, identity.uid, identity.gid)
    }
    await initdb(aside, programs, passwordFile, identity)
    await rename(aside, clusterDir)
  } finally {
    await rm(passwordFile, { force: true })
  }
}

async function initdb(
  folder: string,
  programs: string,
  passwordFile: string,
  identity: Identity,
): Promise<void> {
  const { code, output } = await runProgram(
    program(programs, 'initdb'),
    [
      `--pgdata=${folder}`,
      `--username=${SUPERUSER}`,
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      // The built-in C.UTF-8 is the same on every system; that of libc is
      // missing on some, and without any locale the encoding is SQL_ASCII.
      '--locale=C',
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      '--no-instructions',
    ],
    { ...identity, timeoutMs: INITDB_MS },
  )
  if (code === 0) return
  const reason = output.split('\n').find((line) => line.includes('error:')) ?? output.slice(-500)
  throw new MillraceError('DATABASE_UNAVAILABLE', `The embedded Postgres could not be set up: ${reason}`, {
    details: { dataDir: folder },
  })
}
