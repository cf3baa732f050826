import { missingGrants } from '../db/grants/check-grants.ts'
import { grantStatements } from '../db/grants/grant-statements.ts'
import { assertMigrated } from '../db/migrate/check-migrations.ts'
import { readMigrationFiles } from '../db/migrate/node-files.ts'
import { readSettings } from '../settings.ts'
import type { Cli, Io } from './io.ts'
import { createStyle } from './style.ts'
import { usageError } from './usage-error.ts'
import { withDatabase } from './with-database.ts'

interface Flags {
  role?: string
  schema?: string
}

/** The GRANTs as a script for psql. */
export async function printGrants(io: Io, { role, schema }: Flags): Promise<void> {
  if (role === undefined) throw usageError('whom to grant to is missing: add --role')
  for (const statement of grantStatements(role, schemaOf(io, schema))) io.stdout.write(`${statement};\n`)
}

/** Asks the database what the role lacks. */
export async function checkGrants(cli: Cli, { role, schema }: Flags): Promise<void> {
  const env = { ...cli.io.env, MILLRACE_SCHEMA: schemaOf(cli.io, schema) }
  const io = { ...cli.io, env }
  await withDatabase(io, 'millrace grants', async ({ db, description }) => {
    const style = createStyle(io.stdout, io.env)
    const lacking = await missingGrants(db, role)
    for (const grant of lacking) io.stdout.write(`${style.red('lacks')} ${grant}\n`)
    if (lacking.length > 0) cli.exitCode = 1
    else {
      // what is not there, nobody can lack a right to
      await assertMigrated(db, await readMigrationFiles())
      io.stdout.write(
        `${style.green('✓')} ${role ?? 'the role'} has all that running Millrace needs: ${description}\n`,
      )
    }
  })
}

function schemaOf(io: Io, schema: string | undefined): string {
  return readSettings({ ...io.env, ...(schema && { MILLRACE_SCHEMA: schema }) }).schema
}
