import * as v from 'valibot'
import { invalidInput } from '../errors/millrace-error.ts'

/**
 * Checks a parsed value against a valibot schema and returns the schema's output. The first fault is
 * reported with the path of the field: `headers.x`, `types[2]`.
 *
 * @param whole what to call the value itself, where the fault is not in a field of it
 * @throws INVALID_INPUT; `details.field` names the field
 */
export function parseShape<Schema extends v.GenericSchema>(
  schema: Schema,
  value: unknown,
  whole: string,
): v.InferOutput<Schema> {
  const result = v.safeParse(schema, value, { abortEarly: true })
  if (result.success) return result.output
  const issue = result.issues[0]
  throw invalidInput(pathOf(issue) || whole, problemOf(issue))
}

function pathOf(issue: v.BaseIssue<unknown>): string {
  let path = ''
  for (const { key } of issue.path ?? []) {
    path += typeof key === 'number' ? `[${key}]` : `${path === '' ? '' : '.'}${String(key)}`
  }
  return path
}

function problemOf(issue: v.BaseIssue<unknown>): string {
  if (issue.type === 'strict_object' && issue.expected === 'never') return 'is not a known field'
  if (issue.type === 'strict_object' && issue.path !== undefined) return 'is missing'
  // valibot's own words repeat the value, which may be a secret; those of a check are the schema's
  if (issue.kind === 'validation') return issue.message
  return `must be ${issue.expected === 'Object' ? 'a JSON object' : issue.expected}`
}
