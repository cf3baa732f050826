import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MillraceError } from '../../errors/millrace-error.ts'
import type { MigrationFile } from './migration-file.ts'

const journalPath = join('meta', '_journal.json')

/**
 * Reads the migrations of this version in the order of drizzle-kit's journal.
 *
 * @param folder default: the package's own `drizzle/`
 */
export async function readMigrationFiles(folder: string = packagedFolder()): Promise<MigrationFile[]> {
  const journal = JSON.parse(await readFile(join(folder, journalPath), 'utf8')) as Journal
  const entries = journal.entries.toSorted((a, b) => a.idx - b.idx)
  return Promise.all(entries.map((entry) => readMigration(folder, entry.tag)))
}

interface Journal {
  entries: { idx: number; tag: string }[]
}

async function readMigration(folder: string, name: string): Promise<MigrationFile> {
  const text = await readFile(join(folder, `${name}.sql`), 'utf8')
  // a checkout on Windows may have other line ends, which must not change the hash
  return { name, sql: text.replaceAll('\r\n', '\n') }
}

/** Sources and build lie at different depths below the package, so the folder is looked for upwards. */
function packagedFolder(): string {
  let current = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(current, 'drizzle', journalPath))) {
    const parent = dirname(current)
    if (parent === current)
      throw new MillraceError('INTERNAL', 'the migrations of this version are not where it was installed')
    current = parent
  }
  return join(current, 'drizzle')
}
