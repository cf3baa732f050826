import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createGate, startReceiver, type Receiver } from './receiver.ts'

let receiver: Receiver
beforeEach(async () => {
  receiver = await startReceiver()
})
afterEach(() => receiver.close())

async function post(body: string | Uint8Array<ArrayBuffer>, path = '/hook'): Promise<Response> {
  return fetch(`${receiver.url}${path}`, { method: 'POST', body, headers: { 'X-Mark': 'One' } })
}

describe('the receiver', () => {
  it('records bytes, headers and times', async () => {
    const before = performance.now()
    expect((await post(new Uint8Array([0, 255, 10]))).status).toBe(200)
    const [request] = await receiver.waitFor(1)
    expect(request).toMatchObject({
      index: 0,
      method: 'POST',
      path: '/hook',
      body: Buffer.from([0, 255, 10]),
    })
    expect(request!.headers['x-mark']).toBe('One')
    expect(request!.at).toBeGreaterThanOrEqual(before)
    await receiver.waitFor(([one]) => one!.answered)
  })

  it('answers by script: next ones first, then the standing one', async () => {
    receiver.answer(({ path }) => ({ status: path === '/bad' ? 500 : 204 }))
    receiver.answerNext({ status: 429, headers: { 'Retry-After': '7' }, body: 'slow down' }, { reset: true })
    const busy = await post('a')
    expect([busy.status, busy.headers.get('retry-after'), await busy.text()]).toEqual([429, '7', 'slow down'])
    await expect(post('b')).rejects.toThrow()
    expect((await post('c')).status).toBe(204)
    expect((await post('d', '/bad')).status).toBe(500)
    expect(receiver.requests.map(({ body }) => body.toString())).toEqual(['a', 'b', 'c', 'd'])
  })

  it('holds an answer back until it is released', async () => {
    const gate = createGate()
    receiver.answerNext({ until: gate.opened })
    const held = post('held')
    await receiver.waitFor(1)
    await post('other')
    await expect.poll(() => receiver.open()).toBe(1)
    expect(receiver.requests[0]!.answered).toBe(false)
    gate.open()
    expect((await held).status).toBe(200)
  })

  it('says what it got when the wait is in vain', async () => {
    await post('x', '/only')
    await expect(receiver.waitFor(2, 20)).rejects.toThrow('not within 20 ms: got 1 requests: /only')
  })
})
