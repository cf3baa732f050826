import { MillraceError } from '../errors/millrace-error.ts'
import { parseJson } from '../json/scan.ts'
import { describeJsonProblem, findJsonProblem } from './json-problem.ts'

/**
 * As parseJson, but says where in the text the fault lies.
 *
 * @param what names the text in the message: `data`, `line 7`
 * @throws INVALID_JSON, JSON_TOO_DEEP
 */
export function checkJson(text: string, what: string): unknown {
  try {
    return parseJson(text, what)
  } catch (error) {
    if (!(error instanceof MillraceError) || error.code !== 'INVALID_JSON') throw error
    const problem = findJsonProblem(text)
    if (problem === null || text.trim() === '') throw error
    const where = describeJsonProblem(text, problem)
    throw new MillraceError(
      'INVALID_JSON',
      `${what} is not valid JSON ${where}${hint(text, problem.index)}`,
      {
        details: { field: what },
      },
    )
  }
}

/** Shells take quotes away, so a bare word is what a text most often comes as. */
function hint(text: string, index: number): string {
  if (index === 0 && /^[A-Za-z_][\w .-]*$/.test(text)) return ` (a text needs quotes of its own: '"${text}"')`
  if (text[index] === "'") return ' (JSON takes double quotes only)'
  return ''
}
