import { createServer, type AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { collectAnswer, cleanLine } from '../../src/webhooks/answer-text.ts'
import { createCancel } from '../../src/webhooks/cancel.ts'
import { createNodeSender } from '../../src/webhooks/node-sender.ts'

const closing: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** The address of a server that answers every request with this text. */
async function answering(text: string): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(text))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

describe('an answer that is not HTTP', () => {
  it.each(['000', '042', '099'])('with the status %s is told as such, in words', async (status) => {
    const url = await answering(`HTTP/1.1 ${status} Odd\r\ncontent-length: 0\r\n\r\n`)
    const sender = createNodeSender({ policy: { allowInsecure: true } })
    closing.push(() => sender.close())
    const request = { url, headers: {}, body: '{}', timeoutMs: 20_000, cancel: createCancel() }
    const result = await sender.send(request)
    expect(result).toMatchObject({ kind: 'error', reason: 'protocol' })
    expect(result).toMatchObject({ message: expect.not.stringMatching(/assert|expression|falsy/i) })
  })
})

describe('the text of an answer', () => {
  const bidi = '\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069'

  it('is kept without control characters, those that turn the direction of writing among them', () => {
    const answer = collectAnswer()
    answer.add(new TextEncoder().encode(`a${bidi}b\0\u001b\u0085c\td\nשלום 😀`))
    expect(answer.text()).toBe('abc\td\nשלום 😀')
    expect(cleanLine(`a${bidi}b`)).toBe('a b')
  })
})
