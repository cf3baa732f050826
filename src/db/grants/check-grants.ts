import { sql } from 'drizzle-orm'
import { MillraceError } from '../../errors/millrace-error.ts'
import { textArray } from '../array-literal.ts'
import type { Executor } from '../port.ts'
import { runQuery } from '../run.ts'
import { runtimePrivileges } from './grant-statements.ts'

/**
 * What a role lacks to do all runtime work, such as `INSERT on table offsets`; none: the list is empty. Objects
 * that are not there are a matter of `checkMigrations`. Plain reads of the catalog, which any role may make.
 *
 * @param role default: the one that asks
 * @throws INVALID_INPUT when there is no such role
 */
export async function missingGrants(on: Executor, role?: string): Promise<string[]> {
  if (role !== undefined) await assertRole(on, role)
  const wanted = runtimePrivileges().flatMap(({ kind, name, privileges }) =>
    privileges.map((privilege) => [kind, name, privilege]),
  )
  const column = (index: number) => textArray(wanted.map((row) => row[index] ?? ''))
  const rows = await runQuery<{ lacks: string }>(
    on,
    sql`with asked as (
        select coalesce(${role ?? null}::text, current_user::text)::name as role
      ), home as (
        select n.oid from pg_catalog.pg_namespace n where n.nspname = ${on.schema}::text
      )
      select 'USAGE on schema ' || ${on.schema}::text as lacks from home h, asked a
        where not has_schema_privilege(a.role, h.oid, 'USAGE')
      union all
      select u.privilege || ' on ' || lower(u.kind) || ' ' || u.name
        from unnest(${column(0)}, ${column(1)}, ${column(2)}) as u (kind, name, privilege)
        join home h on true join asked a on true
        join pg_catalog.pg_class c on c.relnamespace = h.oid and c.relname = u.name
        where not case u.kind when 'TABLE' then has_table_privilege(a.role, c.oid, u.privilege)
          else has_sequence_privilege(a.role, c.oid, u.privilege) end
      union all
      select 'EXECUTE on routine ' || p.proname from pg_catalog.pg_proc p
        join home h on p.pronamespace = h.oid join asked a on true
        where not has_function_privilege(a.role, p.oid, 'EXECUTE')
      order by 1`,
  )
  return rows.map(({ lacks }) => lacks)
}

async function assertRole(on: Executor, role: string): Promise<void> {
  const [known] = await runQuery<{ rolname: string }>(
    on,
    sql`select r.rolname::text from pg_catalog.pg_roles r where r.rolname = ${role}::text`,
  )
  if (known !== undefined) return
  throw new MillraceError('INVALID_INPUT', `there is no role "${role}" in the database`, {
    details: { field: 'role' },
  })
}
