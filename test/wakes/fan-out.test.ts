import { describe, expect, it } from 'vitest'
import { createFanOut, type FanOut, type Listener } from '../../src/wakes/fan-out.ts'
import type { ListenValue } from '../../src/wakes/mailbox.ts'

const none = (): void => {}

function deliver(fanOut: FanOut, from: number, through: number): void {
  for (let n = from; n <= through; n++) fanOut.deliver('c', String(n))
}

async function take(listener: Listener, count: number): Promise<ListenValue[]> {
  const values: ListenValue[] = []
  while (values.length < count) {
    const { done, value } = await listener.next()
    if (done === true) break
    values.push(value)
  }
  return values
}

function payloads(values: ListenValue[]): string[] {
  return values.map((value) => (value.kind === 'notification' ? value.payload : value.kind))
}

describe('a listener', () => {
  it('gets the notifications of its channel in order, with the channel', async () => {
    const fanOut = createFanOut(none)
    const listener = fanOut.listen('c')
    fanOut.deliver('other', 'x')
    deliver(fanOut, 1, 2)
    expect(await take(listener, 2)).toEqual([
      { kind: 'notification', channel: 'c', payload: '1' },
      { kind: 'notification', channel: 'c', payload: '2' },
    ])
  })

  it('N3: is told how many it missed, where they were, while a fast one misses nothing', async () => {
    const fanOut = createFanOut(none)
    const slow = fanOut.listen('c', { buffer: 3 })
    const fast = fanOut.listen('c', { buffer: 3 })
    const seen: ListenValue[] = []
    for (let n = 1; n <= 10; n++) {
      fanOut.deliver('c', String(n))
      seen.push(...(await take(fast, 1)))
    }
    expect(payloads(seen)).toEqual(['1', '2', '3', '4', '5', '6', '7', '8', '9', '10'])
    expect(await take(slow, 1)).toEqual([{ kind: 'lagged', missed: 7 }])
    expect(payloads(await take(slow, 3))).toEqual(['8', '9', '10'])
    // and the count begins anew
    deliver(fanOut, 11, 15)
    expect(await take(slow, 1)).toEqual([{ kind: 'lagged', missed: 2 }])
    expect(payloads(await take(slow, 3))).toEqual(['13', '14', '15'])
  })

  it('N3: fills its buffer to the last place before anything counts as missed', async () => {
    const fanOut = createFanOut(none)
    const listener = fanOut.listen('c')
    deliver(fanOut, 1, 1024)
    expect(payloads(await take(listener, 1))).toEqual(['1'])
    fanOut.deliver('c', '1025')
    expect(payloads(await take(listener, 1024)).at(-1)).toBe('1025')
    deliver(fanOut, 1, 1025)
    expect(await take(listener, 1)).toEqual([{ kind: 'lagged', missed: 1 }])
  })

  it('N2 N3: still tells of a reconnect whose place in the buffer was overrun', async () => {
    const fanOut = createFanOut(none)
    const listener = fanOut.listen('c', { buffer: 2 })
    fanOut.deliver('c', '1')
    fanOut.reconnected()
    fanOut.reconnected()
    deliver(fanOut, 2, 4)
    expect(await take(listener, 4)).toEqual([
      { kind: 'lagged', missed: 2 },
      { kind: 'reconnected' },
      { kind: 'notification', channel: 'c', payload: '3' },
      { kind: 'notification', channel: 'c', payload: '4' },
    ])
  })

  it('hands each value to one of several waiting reads', async () => {
    const fanOut = createFanOut(none)
    const listener = fanOut.listen('c')
    const reads = [listener.next(), listener.next()]
    deliver(fanOut, 1, 2)
    const values = (await Promise.all(reads)).map((result) => result.value as ListenValue)
    expect(payloads(values)).toEqual(['1', '2'])
  })

  it('refuses a buffer without room', () => {
    for (const buffer of [0, -1, 1.5, Number.NaN]) {
      expect(() => createFanOut(none).listen('c', { buffer })).toThrow(
        expect.objectContaining({ code: 'INVALID_INPUT' }),
      )
    }
  })
})

describe('the end of a listener', () => {
  it('comes with its signal, at once, also for a read that waits', async () => {
    const fanOut = createFanOut(none)
    const aborter = new AbortController()
    const listener = fanOut.listen('c', { signal: aborter.signal })
    const read = listener.next()
    aborter.abort()
    expect((await read).done).toBe(true)
    await expect(listener.ready).rejects.toMatchObject({ code: 'ABORTED' })
    fanOut.deliver('c', '1')
    expect((await listener.next()).done).toBe(true)
    expect(fanOut.channels()).toEqual([])
  })

  it('comes before its beginning when the signal is aborted already', async () => {
    const fanOut = createFanOut(none)
    const listener = fanOut.listen('c', { signal: AbortSignal.abort() })
    expect((await listener.next()).done).toBe(true)
    expect(fanOut.channels()).toEqual([])
  })

  it('comes with leaving the loop', async () => {
    const fanOut = createFanOut(none)
    const listener = fanOut.listen('c')
    deliver(fanOut, 1, 2)
    for await (const value of listener) {
      expect(value.kind).toBe('notification')
      break
    }
    expect(fanOut.channels()).toEqual([])
  })

  it('comes after what is buffered when all is closed', async () => {
    const fanOut = createFanOut(none)
    const listener = fanOut.listen('c')
    deliver(fanOut, 1, 2)
    fanOut.close()
    const values: ListenValue[] = []
    for await (const value of listener) values.push(value)
    expect(payloads(values)).toEqual(['1', '2'])
    await expect(listener.ready).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  })

  it('comes with the reason when the database refuses the channel', async () => {
    const fanOut = createFanOut(none)
    const listener = fanOut.listen('c')
    const other = fanOut.listen('d')
    fanOut.refuse('c', new Error('no such letters'))
    await expect(listener.next()).rejects.toThrow('no such letters')
    await expect(listener.ready).rejects.toThrow('no such letters')
    expect((await listener.next()).done).toBe(true)
    expect(fanOut.channels()).toEqual(['d'])
    other.close()
  })
})

describe('the channels of a fan-out', () => {
  it('change with each listener that comes, and the last that leaves', () => {
    let changes = 0
    const fanOut = createFanOut(() => (changes += 1))
    const first = fanOut.listen('c')
    const second = fanOut.listen('c')
    expect([changes, fanOut.channels()]).toEqual([2, ['c']])
    first.close()
    first.close()
    expect([changes, fanOut.channels()]).toEqual([2, ['c']])
    second.close()
    expect([changes, fanOut.channels()]).toEqual([3, []])
  })
})
