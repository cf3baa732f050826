import { joinBytes } from '../json/join-bytes.ts'

/** So much of an answer's body is read and kept: enough for an error page's message. */
export const maxAnswerBytes = 16 * 1024

/**
 * All control characters but line feed and tab, NUL first of all: Postgres cannot store it. Those that turn the
 * direction of writing too: with them, a line of a log reads as another one.
 */
// oxlint-disable-next-line no-control-regex -- control characters are what it is about
const controlCharacters = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\p{Bidi_Control}]/gu

/** Collects the start of an answer's body. */
export interface AnswerCollector {
  /** Takes a piece; false once it has enough. */
  add(chunk: Uint8Array): boolean
  /** What was collected, as clean text of at most 16 KiB: invalid UTF-8 is replaced, control characters are removed. */
  text(): string
}

export function collectAnswer(): AnswerCollector {
  const parts: Uint8Array[] = []
  let length = 0
  return {
    add(chunk) {
      const part = chunk.subarray(0, maxAnswerBytes - length)
      parts.push(part)
      length += part.length
      return length < maxAnswerBytes
    },
    text: () => (length === 0 ? '' : cleanText(joinBytes(parts, length))),
  }
}

/** As {@link collectAnswer}, from a stream; stops reading, and so ends the iteration, once it has enough. */
export async function readAnswerText(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const answer = collectAnswer()
  for await (const chunk of chunks) if (!answer.add(chunk)) break
  return answer.text()
}

/** Clean text of at most 16 KiB in UTF-8. */
function cleanText(bytes: Uint8Array): string {
  const text = decode(bytes).replace(controlCharacters, '')
  // a replacement character is longer than the byte it stands for
  const clean = new TextEncoder().encode(text)
  return clean.length <= maxAnswerBytes ? text : decode(clean.subarray(0, maxAnswerBytes))
}

/** What stands in the log for a body: its text, but where it came compressed although `identity` was asked for. */
export function loggedBody(contentEncoding: string | null, text: () => string): string {
  if (contentEncoding === null || contentEncoding.toLowerCase() === 'identity') return text()
  return `(an answer with content-encoding ${cleanLine(contentEncoding).slice(0, 40)}, not decoded)`
}

/** One line of clean text, at most 300 characters, for messages of errors. */
export function cleanLine(text: string): string {
  return text
    .replace(/[\s\p{Cc}\p{Bidi_Control}]+/gu, ' ')
    .trim()
    .slice(0, 300)
}

/** A cut may fall inside a character: with a full buffer, its half is left out. */
function decode(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes, { stream: bytes.length === maxAnswerBytes })
}
