import { defaultSchema } from '../../schema/tables.ts'
import { sha256Hex } from '../sha256-hex.ts'

/** One migration as it stands in drizzle/, written for the schema `millrace`. */
export interface MigrationFile {
  /** The file's name without `.sql`, such as `0000_tables`. */
  name: string
  /** Its text, with line feeds only. */
  sql: string
}

/** SHA-256 of a migration's text in hex, before the schema's name is put in. */
export function hashOf(file: MigrationFile): Promise<string> {
  return sha256Hex(file.sql)
}

/** The migration's text for another schema: the files write the schema's name in double quotes only. */
export function sqlFor(file: MigrationFile, schema: string): string {
  return file.sql.replaceAll(`"${defaultSchema}"`, `"${schema}"`)
}
