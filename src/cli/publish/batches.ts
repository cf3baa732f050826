import { MillraceError } from '../../errors/millrace-error.ts'
import { checkJson } from '../check-json.ts'
import type { Line } from './read-lines.ts'

/** Lines that are published together. */
export interface Batch {
  lines: Line[]
  bytes: number
}

const maxEvents = 500
/** Below the 1 MiB that a server takes; a single line above it goes alone, for the server to judge. */
const maxBytes = 900 * 1024

/**
 * Lines in batches. Each is checked to be an event before any of its batch is sent; blank ones do not
 * count.
 *
 * @throws INVALID_JSON, JSON_TOO_DEEP, INVALID_INPUT; the message names the line
 */
export async function* toBatches(
  lines: AsyncIterable<Line>,
  fromLine: number,
): AsyncGenerator<Batch, void, undefined> {
  let batch: Batch = { lines: [], bytes: 0 }
  for await (const line of lines) {
    if (line.number < fromLine || line.text.trim() === '') continue
    assertEvent(line)
    const bytes = Buffer.byteLength(line.text) + 1
    if (batch.lines.length > 0 && batch.bytes + bytes > maxBytes) {
      yield batch
      batch = { lines: [], bytes: 0 }
    }
    batch.lines.push(line)
    batch.bytes += bytes
    if (batch.lines.length === maxEvents) {
      yield batch
      batch = { lines: [], bytes: 0 }
    }
  }
  if (batch.lines.length > 0) yield batch
}

/** The server checks the rest, and names the line's place in the batch. */
function assertEvent({ number, text }: Line): void {
  const event = checkJson(text, `line ${number}`)
  if (typeof event === 'object' && event !== null && 'type' in event && 'data' in event) return
  throw new MillraceError('INVALID_INPUT', `line ${number} must be an event: {"type":…,"data":…}`, {
    details: { field: `line ${number}` },
  })
}

/** A refusal of the server's, with the line in the file instead of the place in the batch. */
export function withLine(error: MillraceError, batch: Batch): MillraceError {
  const field = String(error.details.field ?? '')
  const place = /^\[(\d+)\]\.?/.exec(field)
  const line = place === null ? batch.lines.length === 1 && batch.lines[0] : batch.lines[Number(place[1])]
  if (!line || field === '') return error
  const words = place === null ? error.message : error.message.replace(place[0], '').trim()
  return new MillraceError(error.code, `line ${line.number}: ${words}`, { details: { line: line.number } })
}
