import type { PGlite } from '@electric-sql/pglite'
import { MillraceError } from '../../errors/millrace-error.ts'
import type { DirectConnection } from '../port.ts'
import { quotedName } from '../quoted-name.ts'
import { translateError } from '../translate-error.ts'

/** A script of nothing but LISTEN and UNLISTEN, and one statement of it. */
const listenStatement = /(UN)?LISTEN\s+("(?:[^"]|"")+"|[a-z_][a-z0-9_]*)\s*(?:;|$)/iy

interface ListenStep {
  listen: boolean
  name: string
}

/**
 * A view of PGlite's one session that has its own LISTENs: they are counted, so that one view's
 * UNLISTEN leaves those of another. All else is shared with everyone.
 *
 * @throws DATABASE_UNAVAILABLE, ABORTED
 */
export async function openPgliteSession(pglite: PGlite, signal?: AbortSignal): Promise<DirectConnection> {
  await pglite.waitReady.catch((error: unknown) => {
    throw translateError(error)
  })
  if (signal?.aborted) throw new MillraceError('ABORTED', 'the caller aborted the connection')
  const notified = new Set<(channel: string, payload: string) => void>()
  const closed = new Set<(error?: Error) => void>()
  const channels = createChannels(pglite, (channel, payload) => {
    for (const listener of notified) listener(channel, payload)
  })
  let closing: Promise<void> | undefined
  let ended = false

  async function run<T>(work: () => Promise<T>): Promise<T> {
    if (closing !== undefined) throw new MillraceError('DATABASE_UNAVAILABLE', 'the connection was closed')
    try {
      return await work()
    } catch (error) {
      throw translateError(error)
    }
  }
  async function execute(script: string): Promise<void> {
    const steps = parseListens(script)
    if (steps === undefined) return void (await pglite.exec(script))
    for (const step of steps) await channels.apply(step)
  }
  async function close(): Promise<void> {
    await channels.clear()
    ended = true
    for (const listener of closed) listener()
  }
  return {
    query: (text, parameters = []) =>
      run(async () => {
        if (parseListens(text) === undefined) return (await pglite.query<Row>(text, parameters)).rows
        await execute(text)
        return []
      }),
    execute: (script) => run(() => execute(script)),
    onNotification: (listener) => void notified.add(listener),
    onClose: (listener) => (ended ? queueMicrotask(listener) : void closed.add(listener)),
    close: () => (closing ??= close()),
  }
}

type Row = Record<string, unknown>

/** How many views LISTEN to a channel, since the session below them is one. */
const listening = new WeakMap<PGlite, Map<string, number>>()

/**
 * The LISTENs of one view. PGlite's own `listen` would count them too, but it misses channels with a
 * quote in their name.
 */
function createChannels(pglite: PGlite, onNotification: (channel: string, payload: string) => void) {
  const mine = new Set<string>()
  const counts = listening.get(pglite) ?? new Map<string, number>()
  listening.set(pglite, counts)
  const stop = pglite.onNotification((channel, payload) => {
    if (mine.has(channel)) onNotification(channel, payload)
  })

  async function unlisten(name: string): Promise<void> {
    if (!mine.delete(name)) return
    const left = (counts.get(name) ?? 1) - 1
    counts.set(name, left)
    if (left > 0) return
    counts.delete(name)
    if (!pglite.closed) await pglite.exec(`UNLISTEN ${quotedName(name)}`)
  }
  return {
    async apply({ listen, name }: ListenStep): Promise<void> {
      if (!listen) return unlisten(name)
      if (mine.has(name)) return
      mine.add(name)
      counts.set(name, (counts.get(name) ?? 0) + 1)
      try {
        // also where another view listens already: its LISTEN may still be under way
        await pglite.exec(`LISTEN ${quotedName(name)}`)
      } catch (error) {
        await unlisten(name)
        throw error
      }
    },
    async clear(): Promise<void> {
      stop()
      for (const name of Array.from(mine)) await unlisten(name)
    },
  }
}

/** The name that a channel as written, quoted or not, stands for. */
function nameOf(channel: string): string {
  return channel.startsWith('"') ? channel.slice(1, -1).replaceAll('""', '"') : channel.toLowerCase()
}

function parseListens(script: string): ListenStep[] | undefined {
  const text = script.trim()
  const steps: ListenStep[] = []
  listenStatement.lastIndex = 0
  while (listenStatement.lastIndex < text.length) {
    const match = listenStatement.exec(text)
    if (match === null) return undefined
    steps.push({ listen: match[1] === undefined, name: nameOf(match[2]!) })
    while (/\s/.test(text[listenStatement.lastIndex] ?? '')) listenStatement.lastIndex++
  }
  return steps.length === 0 ? undefined : steps
}
