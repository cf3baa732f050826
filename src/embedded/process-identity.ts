import { readFileSync } from 'node:fs'

/** Whether a process with this id exists, whoever owns it. */
export function processExists(pid: number): boolean {
  // To kill(2) these mean groups of processes, the own one among them.
  if (pid <= 0) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/**
 * When a process started, in ticks since the machine did; where /proc tells.
 * Ids are used again, and soon so in containers, where every start counts from
 * 1: the id and this number together name one process.
 */
export function processStart(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name in parentheses may hold spaces, so count fields after it.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  } catch {
    return undefined
  }
}
