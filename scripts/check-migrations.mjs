// Fails when the tables in src/schema differ from what the migrations in drizzle/ make: then
// `drizzle-kit generate` would write another migration. It is tried on a copy.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
// below the package, since drizzle-kit takes a relative folder only
const copy = mkdtempSync(join(root, 'node_modules', '.drizzle-check-'))

const entries = () => JSON.parse(readFileSync(join(copy, 'meta', '_journal.json'), 'utf8')).entries

function check() {
  cpSync(join(root, 'drizzle'), copy, { recursive: true })
  const before = entries().length
  const run = spawnSync(
    process.execPath,
    [
      join(root, 'node_modules', 'drizzle-kit', 'bin.cjs'),
      'generate',
      '--dialect=postgresql',
      '--schema=./src/schema/default-tables.ts',
      `--out=./${relative(root, copy)}`,
    ],
    // without input it cannot wait for an answer when a change is ambiguous, and fails
    { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], timeout: 120_000 },
  )
  const added = entries().slice(before)
  if (added.length > 0) {
    const sql = readFileSync(join(copy, `${added[0].tag}.sql`), 'utf8')
    return `The schema has changed without a migration; run \`npm run db:generate\`. It would be:\n${sql}`
  }
  if (run.status !== 0 || !/No schema changes/.test(run.stdout))
    return `drizzle-kit did not finish:\n${run.stdout}${run.stderr}`
  return undefined
}

try {
  const problem = check()
  console.log(problem ?? 'The migrations make the schema that src/schema declares.')
  process.exitCode = problem === undefined ? 0 : 1
} finally {
  rmSync(copy, { recursive: true, force: true })
}
