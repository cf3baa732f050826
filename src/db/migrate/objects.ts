import { sql } from 'drizzle-orm'
import { textArray } from '../array-literal.ts'
import type { Executor } from '../port.ts'
import { MillraceError } from '../../errors/millrace-error.ts'
import { runQuery } from '../run.ts'
import type { MigrationFile } from './migration-file.ts'

/** Something that a migration makes. */
export interface MadeObject {
  kind: 'table' | 'sequence' | 'function' | 'procedure'
  /** Within the schema. */
  name: string
}

/** The files write the schema's name in double quotes, and nothing between CREATE and the kind but OR REPLACE. */
const made =
  /^(?:CREATE (?:OR REPLACE )?|(DROP) )(TABLE|SEQUENCE|FUNCTION|PROCEDURE) (?:IF (?:NOT )?EXISTS )?"millrace"\."([^"]+)"/gim

/** What a migration leaves: what it makes, without what it drops again. */
export function objectsOf(files: readonly MigrationFile[]): MadeObject[] {
  const objects = new Map<string, MadeObject>()
  for (const { sql: text } of files) {
    for (const [, dropped, kind = '', name = ''] of text.matchAll(made)) {
      const object = { kind: kind.toLowerCase() as MadeObject['kind'], name }
      if (dropped === undefined) objects.set(`${object.kind} ${name}`, object)
      else objects.delete(`${object.kind} ${name}`)
    }
  }
  return [...objects.values()]
}

/**
 * Which of the objects are not in the schema, such as `table offsets`. One statement on the catalog, which any
 * role may run.
 */
export async function lackingObjects(on: Executor, objects: readonly MadeObject[]): Promise<string[]> {
  const kinds = textArray(objects.map(({ kind }) => kind))
  const names = textArray(objects.map(({ name }) => name))
  const rows = await runQuery<{ lacking: string }>(
    on,
    sql`with home as (
        select n.oid from pg_catalog.pg_namespace n where n.nspname = ${on.schema}::text
      )
      select u.kind || ' ' || u.name as lacking
        from unnest(${kinds}, ${names}) with ordinality as u (kind, name, position)
        where not exists (
            select 1 from pg_catalog.pg_class c join home h on c.relnamespace = h.oid
              where c.relname = u.name and c.relkind = case u.kind when 'table' then 'r' when 'sequence' then 'S' end::"char")
          and not exists (
            select 1 from pg_catalog.pg_proc p join home h on p.pronamespace = h.oid
              where p.proname = u.name and p.prokind = case u.kind when 'function' then 'f' when 'procedure' then 'p' end::"char")
        order by u.position`,
  )
  return rows.map(({ lacking }) => lacking)
}

/**
 * Refuses a schema in which something is missing that its migrations have made.
 *
 * @param lacking from {@link lackingObjects}
 * @throws NOT_MIGRATED
 */
export function assertComplete(lacking: string[], schema: string): void {
  if (lacking.length > 0)
    throw new MillraceError('NOT_MIGRATED', lackingText(lacking, schema), { details: { schema, lacking } })
}

/** That something is missing, in words. */
export function lackingText(lacking: readonly string[], schema: string): string {
  return `schema "${schema}" lacks the ${lacking.join(', the ')}, which the migrations have made: something else dropped or renamed it`
}
