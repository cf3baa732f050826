import { expect } from 'vitest'
import type { ReceivedRequest, Receiver } from '../../support/receiver.ts'

/** Answers the first two attempts of every event with 503, per path. */
export function failTwice(receiver: Receiver): void {
  const attempts = new Map<string, number>()
  receiver.answer((request) => {
    const id = `${request.path} ${String(request.headers['webhook-id'])}`
    const attempt = (attempts.get(id) ?? 0) + 1
    attempts.set(id, attempt)
    return { status: attempt <= 2 ? 503 : 200 }
  })
}

/** The number that the event of a delivery carries. */
export function numberOf(request: ReceivedRequest): number {
  return (JSON.parse(request.body.toString('utf8')) as { data: { n: number } }).data.n
}

/** Expects each of the events 0 to `count`, `attempts` times, within each key in order (W1, W3). */
export function expectInOrder(
  requests: readonly ReceivedRequest[],
  { count, keys, attempts }: { count: number; keys: number; attempts: number },
): void {
  const numbers = requests.map(numberOf)
  for (let key = 0; key < keys; key++) {
    const mine = numbers.filter((n) => n % keys === key)
    const expected = []
    for (let n = key; n < count; n += keys) for (let time = 0; time < attempts; time++) expected.push(n)
    expect(mine).toEqual(expected)
  }
}
