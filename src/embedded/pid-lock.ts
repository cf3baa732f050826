import {
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  rmdirSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { processExists, processStart } from './process-identity.ts'

/** The outcome of {@link tryPidLock}: ours until `release`, or whose it is. */
export type PidLock = { held: true; release(): void } | { held: false; pid: number }

interface Holder {
  pid: number
  start: string | undefined
  id: string
}

/** A breaker of a dead lock that itself died is waited for this long. Breaking takes microseconds. */
const BREAK_MS = 5000

/**
 * Takes the lock that the file at `path` stands for, if no living process of
 * this machine holds it. The file holds the id of its holder; a lock whose
 * holder died is taken over. The same process cannot take it twice.
 *
 * Everything is synchronous, so that it can be released from an exit hook.
 */
export function tryPidLock(path: string): PidLock {
  const own: Holder = { pid: process.pid, start: processStart(process.pid), id: randomUUID() }
  const draft = `${path}.${own.id}`
  writeFileSync(draft, JSON.stringify(own), { mode: 0o644 })
  try {
    // A hard link appears with its content, or not at all.
    for (;;) {
      if (tryLink(draft, path)) return { held: true, release: () => release(path, own.id) }
      const holder = readHolder(path)
      if (holder !== undefined && isAlive(holder)) return { held: false, pid: holder.pid }
      if (holder !== undefined) breakLock(path, holder)
    }
  } finally {
    unlinkSync(draft)
  }
}

/**
 * Waits for the lock.
 *
 * @returns the release function, or `undefined` when `timeoutMs` ran out
 */
export async function waitForPidLock(path: string, timeoutMs: number): Promise<(() => void) | undefined> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const lock = tryPidLock(path)
    if (lock.held) return lock.release
    if (performance.now() > deadline) return undefined
    await delay(25)
  }
}

function isAlive(holder: Holder): boolean {
  if (!processExists(holder.pid)) return false
  return holder.start === undefined || holder.start === processStart(holder.pid)
}

/**
 * Removes the lock of a dead holder. Only one process at a time may do so, and
 * only after it looked again: else a second one would remove the new lock that
 * the first has put there in the meantime.
 */
function breakLock(path: string, dead: Holder): void {
  const breaking = `${path}.break`
  try {
    mkdirSync(breaking)
  } catch {
    removeIfOlderThan(breaking, BREAK_MS)
    return
  }
  try {
    if (readHolder(path)?.id === dead.id) unlinkSync(path)
  } finally {
    rmdirSync(breaking)
  }
}

function removeIfOlderThan(folder: string, ageMs: number): void {
  const age = Date.now() - (statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? Date.now())
  if (age > ageMs) rmSync(folder, { recursive: true, force: true })
}

function release(path: string, id: string): void {
  if (readHolder(path)?.id === id) unlinkSync(path)
}

function readHolder(path: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Holder
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    // Cut off by a full disk or an unclean shutdown: nobody's.
    if (error instanceof SyntaxError) return { pid: 0, start: undefined, id: 'unreadable' }
    throw error
  }
}

function tryLink(draft: string, path: string): boolean {
  try {
    linkSync(draft, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}
