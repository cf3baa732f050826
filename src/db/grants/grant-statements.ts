import { getTableName } from 'drizzle-orm'
import { MillraceError } from '../../errors/millrace-error.ts'
import { defineTables, defaultSchema } from '../../schema/tables.ts'
import { quotedName } from '../quoted-name.ts'
import { sequencePrivileges, tablePrivileges, type TablePrivilege } from './runtime-privileges.ts'

/** A privilege on a table or a sequence, by its name in the schema. */
export interface ObjectPrivilege {
  kind: 'TABLE' | 'SEQUENCE'
  name: string
  privileges: (TablePrivilege | 'USAGE')[]
}

/** What a runtime role needs of each table and sequence. */
export function runtimePrivileges(): ObjectPrivilege[] {
  const tables = defineTables()
  return [
    ...Object.entries(tablePrivileges).map(([key, privileges]) => ({
      kind: 'TABLE' as const,
      name: getTableName(tables[key as keyof typeof tablePrivileges]),
      privileges,
    })),
    ...Object.entries(sequencePrivileges).map(([name, privilege]) => ({
      kind: 'SEQUENCE' as const,
      name,
      privileges: [privilege],
    })),
  ]
}

/**
 * The GRANTs by which a role can do all that Millrace does while it runs, and nothing else: no table can be made,
 * changed or dropped, and events come and go by our functions only. They only ever add; to grant twice is to
 * grant once. After an upgrade they are to be given again, for what is new.
 *
 * @param role its name as Postgres has it, unquoted
 * @throws INVALID_INPUT when the role's name cannot be one
 */
export function grantStatements(role: string, schema: string = defaultSchema): string[] {
  const to = `TO ${quoted(role)}`
  const within = quoted(schema)
  return [
    `GRANT USAGE ON SCHEMA ${within} ${to}`,
    ...runtimePrivileges().map(
      ({ kind, name, privileges }) =>
        `GRANT ${privileges.join(', ')} ON ${kind} ${within}.${quoted(name)} ${to}`,
    ),
    `GRANT EXECUTE ON ALL ROUTINES IN SCHEMA ${within} ${to}`,
  ]
}

/** Postgres cuts longer names off in silence, and the grant would go to another role. */
const maxNameBytes = 63

function quoted(name: string): string {
  if (name === '' || name.includes('\0') || new TextEncoder().encode(name).byteLength > maxNameBytes) {
    throw new MillraceError('INVALID_INPUT', 'role must be 1 to 63 bytes without NUL', {
      details: { field: 'role' },
    })
  }
  return quotedName(name)
}
