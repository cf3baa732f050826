import { isMillraceError } from '../../errors/millrace-error.ts'
import { printable } from '../printable.ts'
import type { Style } from '../style.ts'

/** One thing that was looked at. */
export interface Finding {
  /** `note`: nothing to do. `warn`: works, but look at it. `fail`: does not work. */
  level: 'ok' | 'note' | 'warn' | 'fail'
  topic: string
  text: string
}

/** A check that could not be made is a finding too. */
export async function attempt(topic: string, check: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await check()
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error)
    const code = isMillraceError(error) ? ` (${error.code})` : ''
    return [{ level: 'fail', topic, text: `${words}${code}` }]
  }
}

const topicWidth = 13

/** A finding as a line. */
export function findingLine({ level, topic, text }: Finding, style: Style): string {
  const marks = { ok: style.green('✓'), note: style.dim('·'), warn: style.yellow('!'), fail: style.red('✗') }
  return `${marks[level]} ${style.bold(topic.padEnd(topicWidth))} ${printable(text)}\n`
}
