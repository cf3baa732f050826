import pg from 'pg'
import type { SqlRequest, Statement } from './sql-request.ts'

/** One result the way Neon's driver reads it. */
export interface SqlResult {
  command: string
  rowCount: number | null
  fields: pg.FieldDef[]
  rows: unknown[]
  rowAsArray: boolean
}

type Shape = Pick<SqlRequest, 'arrayMode' | 'rawText'>

/** Without raw text Neon gives these as JSON values (booleans, small numbers, JSON, and arrays of them), the rest as text. */
const JSON_TYPES = new Set([16, 21, 23, 114, 700, 701, 3802, 199, 1000, 1005, 1007, 1009, 1021, 1022, 3807])

/** Hands every value on as Postgres printed it. */
const asPrinted: pg.CustomTypesConfig = { getTypeParser: () => (text: string | Buffer) => text }

/** Runs a single statement by itself, or a batch in one transaction that is rolled back at the first error. */
export async function runStatements(client: pg.ClientBase, request: SqlRequest): Promise<SqlResult[]> {
  if (!request.batch) return [await runStatement(client, request.statements[0]!, request)]
  await client.query(request.begin)
  try {
    const results: SqlResult[] = []
    for (const statement of request.statements) results.push(await runStatement(client, statement, request))
    await client.query('COMMIT')
    return results
  } catch (error) {
    // A lost connection cannot be rolled back, and has been already.
    await client.query('ROLLBACK').catch(() => {})
    throw error
  }
}

/**
 * Always by the extended protocol: it takes exactly one statement, and a CALL
 * by itself is not wrapped in a transaction, so the procedure may COMMIT.
 */
async function runStatement(client: pg.ClientBase, statement: Statement, shape: Shape): Promise<SqlResult> {
  const config: pg.QueryArrayConfig & { queryMode: 'extended' } = {
    text: statement.query,
    values: statement.params,
    rowMode: 'array',
    types: asPrinted,
    queryMode: 'extended',
  }
  const { command, rowCount, fields, rows } = await client.query<(string | null)[]>(config)
  return {
    command,
    rowCount,
    fields,
    rows: rows.map((row) => shapeRow(row, fields, shape)),
    rowAsArray: shape.arrayMode,
  }
}

function shapeRow(row: (string | null)[], fields: pg.FieldDef[], shape: Shape): unknown {
  const values = shape.rawText ? row : row.map((text, index) => toJsonValue(text, fields[index]!.dataTypeID))
  if (shape.arrayMode) return values
  return Object.fromEntries(values.map((value, index) => [fields[index]!.name, value]))
}

function toJsonValue(text: string | null, type: number): unknown {
  if (text === null || !JSON_TYPES.has(type)) return text
  const value: unknown = pg.types.getTypeParser(type, 'text')(text)
  // JSON has no NaN and no Infinity.
  return typeof value === 'number' && !Number.isFinite(value) ? text : value
}
