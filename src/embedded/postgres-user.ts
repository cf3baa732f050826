import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, cp, mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { MillraceError } from '../errors/millrace-error.ts'
import { completePackage, program, type PostgresPackage } from './postgres-package.ts'
import { runProgram, type Identity } from './run-program.ts'

const USER = 'postgres'

/**
 * Where data and programs go that the Postgres user could not reach where they
 * are. Not below /var/tmp: what lies there is aged out, and anybody may make
 * the folder first. Only root comes here, so it can always be written.
 */
const REACHABLE_PLACE = '/var/lib/millrace'

/**
 * Postgres refuses to run as root. Gives the system user to run it as, made if
 * missing; nothing when this process is not root.
 *
 * @throws INVALID_SETTING when the user is missing and cannot be made
 */
export async function postgresIdentity(): Promise<Identity> {
  if (process.getuid?.() !== 0) return {}
  const existing = await lookUpUser()
  if (existing !== undefined) return existing
  const made = await runProgram('useradd', ['--system', '--user-group', '--shell', '/bin/sh', USER], {
    timeoutMs: 10_000,
  })
  const identity = await lookUpUser()
  if (identity !== undefined) return identity
  throw new MillraceError(
    'INVALID_SETTING',
    `Postgres does not run as root, and the system user "${USER}" could not be made (${made.output}). Start Millrace as another user, or set DATABASE_URL.`,
  )
}

async function lookUpUser(): Promise<Identity | undefined> {
  const [uid, gid] = await Promise.all(
    ['-u', '-g'].map((flag) => runProgram('id', [flag, USER], { timeoutMs: 10_000 })),
  )
  if (uid?.code !== 0 || gid?.code !== 0) return undefined
  return { uid: Number(uid.output), gid: Number(gid.output) }
}

/** Whether the user can enter the folder, found out by entering it as that user. */
async function canEnter(folder: string, identity: Identity): Promise<boolean> {
  const { code } = await runProgram('/bin/sh', ['-c', 'cd "$0"', folder], { ...identity, timeoutMs: 10_000 })
  return code === 0
}

/**
 * The folder for the cluster of `dataDir`: inside it when the Postgres user can
 * get there, else a folder of its own in a place that user can reach.
 *
 * @param seed a secret kept in `dataDir`, so that deleting `dataDir` means a new cluster here too
 */
export async function placeCluster(dataDir: string, seed: string, identity: Identity): Promise<string> {
  if (identity.uid === undefined || (await canEnter(dataDir, identity))) return join(dataDir, 'pgdata')
  const name = createHash('sha256').update(`${dataDir}\n${seed}`).digest('hex').slice(0, 12)
  return join(await makeReachable(name), 'pgdata')
}

/**
 * The folder to run the programs from: the npm package itself when the user can
 * run them there, else a copy (60 MB, made once per version).
 */
export async function placePrograms(found: PostgresPackage, identity: Identity): Promise<string> {
  await completePackage(found.root)
  if (identity.uid === undefined || (await runs(found.root, identity))) return found.root
  await makeReachable()
  const copy = join(REACHABLE_PLACE, `programs-${found.version}-${process.platform}-${process.arch}`)
  if (!existsSync(copy)) await copyPrograms(found.root, copy)
  await completePackage(copy)
  if (await runs(copy, identity)) return copy
  const { output } = await runProgram(program(copy, 'postgres'), ['--version'], {
    ...identity,
    timeoutMs: 10_000,
  })
  throw new MillraceError('INVALID_SETTING', `The embedded Postgres cannot run on this machine: ${output}`)
}

/** Makes the reachable place, and a folder in it. The modes are set again, since a umask of 077 cuts them. */
async function makeReachable(name = ''): Promise<string> {
  const folder = join(REACHABLE_PLACE, name)
  await mkdir(folder, { recursive: true })
  await chmod(REACHABLE_PLACE, 0o755)
  await chmod(folder, 0o755)
  return folder
}

async function runs(root: string, identity: Identity): Promise<boolean> {
  const { code } = await runProgram(program(root, 'postgres'), ['--version'], {
    ...identity,
    timeoutMs: 10_000,
  })
  return code === 0 && (await canEnter(join(root, 'native', 'share'), identity))
}

/** Copies aside and renames, so that nobody sees half a copy and two at once do not mix. */
async function copyPrograms(root: string, copy: string): Promise<void> {
  const aside = `${copy}.${process.pid}`
  await mkdir(aside)
  await cp(join(root, 'native'), join(aside, 'native'), { recursive: true, verbatimSymlinks: true })
  await openToAll(aside)
  await rename(aside, copy).catch(() => rm(aside, { recursive: true, force: true }))
}

/** Under a umask of 077 npm unpacks files that only their owner can read. */
async function openToAll(folder: string): Promise<void> {
  await chmod(folder, 0o755)
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) await openToAll(path)
    else if (entry.isFile()) await chmod(path, (await stat(path)).mode & 0o100 ? 0o755 : 0o644)
  }
}
