import { fork } from 'node:child_process'

/** Somebody else who listens: the forwarder of another process, woken by every publish. */
export interface ListenerProcess {
  stop(): void
}

/** Starts bench/listener.ts, and waits until its LISTEN stands. */
export async function startListener(url: string): Promise<ListenerProcess> {
  const child = fork(new URL('../listener.ts', import.meta.url), [url])
  await new Promise<void>((resolve, reject) => {
    child.once('message', () => resolve())
    child.once('exit', () => reject(new Error('the listener has ended')))
  })
  return { stop: () => void child.kill() }
}
