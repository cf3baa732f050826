import { fork, type ChildProcess } from 'node:child_process'

/** The receiver, seen from here. */
export interface Receiver {
  url: string
  /** `done` resolves when `count` requests have arrived from now on. */
  expect(count: number): Promise<{ done: Promise<void> }>
  /** As `expect`; `times` are those of arrival (ms), by the number `n` that each body carries. */
  record(count: number): Promise<{ times: Promise<Map<number, number>> }>
  stop(): void
}

/** Starts bench/receiver.ts. */
export async function startReceiver(): Promise<Receiver> {
  const child = fork(new URL('../receiver.ts', import.meta.url))
  const port = await next<number>(child, 'port')
  async function order(message: { expect: number; record: boolean }): Promise<void> {
    const ready = next(child, 'ready')
    child.send(message)
    await ready
  }
  return {
    url: `http://127.0.0.1:${port}`,
    async expect(count) {
      const done = next<number>(child, 'done')
      await order({ expect: count, record: false })
      return { done: done.then(() => {}) }
    },
    async record(count) {
      const times = next<[number, number][]>(child, 'times')
      await order({ expect: count, record: true })
      return { times: times.then((pairs) => new Map(pairs)) }
    },
    stop: () => void child.kill(),
  }
}

/** The next message of the child that has the key. */
function next<T>(child: ChildProcess, key: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const fail = (): void => reject(new Error('the receiver has ended'))
    const listen = (message: Record<string, T>): void => {
      if (!(key in message)) return
      child.off('message', listen)
      child.off('exit', fail)
      resolve(message[key] as T)
    }
    child.on('message', listen)
    child.once('exit', fail)
  })
}
