import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { MillraceError } from '../../errors/millrace-error.ts'
import type { Io } from '../io.ts'

/** A line of a file. */
export interface Line {
  /** From 1. */
  number: number
  text: string
  /** Where it ends in the file, in bytes. */
  end: number
}

/** What is read from: a file, or stdin. */
export interface Source {
  chunks: AsyncIterable<Uint8Array>
  /** Null where nobody knows. */
  totalBytes: number | null
}

/** The server takes 1 MiB; this only keeps a file without line breaks out of the memory. */
const maxLineBytes = 4 * 1024 * 1024

/**
 * Opens a file, or stdin for `-`.
 *
 * @throws BAD_REQUEST when it cannot be read
 */
export async function openSource(io: Io, file: string): Promise<Source> {
  if (file === '-') return { chunks: io.stdin, totalBytes: null }
  try {
    const found = await stat(file)
    if (found.isDirectory()) throw new MillraceError('BAD_REQUEST', `${file} is a folder`)
    return { chunks: createReadStream(file), totalBytes: found.isFile() ? found.size : null }
  } catch (error) {
    if (error instanceof MillraceError) throw error
    const { code } = error as NodeJS.ErrnoException
    const problem = code === 'ENOENT' ? 'there is no such file' : (code ?? String(error))
    throw new MillraceError('BAD_REQUEST', `${file} cannot be read: ${problem}`, { cause: error })
  }
}

/**
 * The lines of a source, without their ends and without a byte order mark.
 *
 * @throws BAD_REQUEST when a line is no UTF-8, or longer than 4 MiB
 */
export async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Line, void, undefined> {
  const parts: Uint8Array[] = []
  const position = { number: 1, end: 0 }
  let pending = 0
  for await (const chunk of chunks) {
    let from = 0
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      parts.push(chunk.subarray(from, at))
      position.end += at + 1 - from
      yield toLine(parts.splice(0), position)
      position.number += 1
      from = at + 1
      pending = 0
    }
    parts.push(chunk.subarray(from))
    position.end += chunk.length - from
    pending += chunk.length - from
    if (pending > maxLineBytes) throw badLine(position.number, `is longer than ${maxLineBytes} bytes`)
  }
  if (pending > 0) yield toLine(parts, position)
}

/** All of stdin as text. */
export async function readText(io: Io): Promise<string> {
  const parts: Uint8Array[] = []
  for await (const chunk of io.stdin) parts.push(chunk)
  if (io.signal.aborted) throw new MillraceError('ABORTED', 'stopped')
  return decode(parts, () => new MillraceError('BAD_REQUEST', 'stdin is not valid UTF-8'))
}

function toLine(parts: Uint8Array[], { number, end }: { number: number; end: number }): Line {
  const text = decode(parts, () => badLine(number, 'is not valid UTF-8'))
  return { number, end, text: text.endsWith('\r') ? text.slice(0, -1) : text }
}

function decode(parts: Uint8Array[], failure: () => MillraceError): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(parts))
  } catch {
    throw failure()
  }
}

function badLine(number: number, problem: string): MillraceError {
  return new MillraceError('BAD_REQUEST', `line ${number} ${problem}`, { details: { line: number } })
}
