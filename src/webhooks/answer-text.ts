/** So much of an answer's body is read and kept: enough for an error page's message. */
export const maxAnswerBytes = 16 * 1024

/** All control characters but line feed and tab, NUL first of all: Postgres cannot store it. */
// oxlint-disable-next-line no-control-regex -- control characters are what it is about
const controlCharacters = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g

/**
 * The start of an answer's body as clean text of at most 16 KiB: invalid UTF-8 is
 * replaced, control characters are removed. Stops reading, and so ends the iteration,
 * once it has enough.
 */
export async function readAnswerText(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const bytes = new Uint8Array(maxAnswerBytes)
  let length = 0
  for await (const chunk of chunks) {
    const part = chunk.subarray(0, maxAnswerBytes - length)
    bytes.set(part, length)
    length += part.length
    if (length === maxAnswerBytes) break
  }
  return cleanText(bytes.subarray(0, length))
}

/** Clean text of at most 16 KiB in UTF-8. */
function cleanText(bytes: Uint8Array): string {
  const text = decode(bytes).replace(controlCharacters, '')
  // a replacement character is longer than the byte it stands for
  const clean = new TextEncoder().encode(text)
  return clean.length <= maxAnswerBytes ? text : decode(clean.subarray(0, maxAnswerBytes))
}

/** What stands in the log for a body that came compressed although `identity` was asked for. */
export function encodedNote(contentEncoding: string): string {
  return `(an answer with content-encoding ${cleanLine(contentEncoding).slice(0, 40)}, not decoded)`
}

/** One line of clean text, at most 300 characters, for messages of errors. */
export function cleanLine(text: string): string {
  return text
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
    .slice(0, 300)
}

/** A cut may fall inside a character: with a full buffer, its half is left out. */
function decode(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes, { stream: bytes.length === maxAnswerBytes })
}
