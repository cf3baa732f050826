import { describeError } from '../errors/describe-error.ts'
import { invalidInput } from '../errors/millrace-error.ts'

/**
 * A value as JSON text. Not every value has one: undefined and functions have none, and with a BigInt, a cycle or a
 * `toJSON` that fails JSON.stringify throws.
 *
 * @throws INVALID_INPUT naming the field
 */
export function jsonTextOf(value: unknown, field: string): string {
  let problem = 'has no JSON form'
  try {
    const text = JSON.stringify(value) as string | undefined
    if (text !== undefined) return text
  } catch (error) {
    problem = `has no JSON form: ${describeError(error)}`
  }
  throw invalidInput(field, problem)
}
