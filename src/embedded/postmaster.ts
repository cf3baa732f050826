import { realpathSync, readlinkSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { processExists } from './process-identity.ts'

/** What a running server writes about itself into its data folder. */
export interface Postmaster {
  pid: number
  port: number
  /** `starting`, `ready`, `stopping` and the like. */
  status: string
}

/** Reads `postmaster.pid`: pid, folder, start, port, socket, address, shared memory, status; a line each. */
export async function readPostmaster(clusterDir: string): Promise<Postmaster | undefined> {
  const text = await readFile(join(clusterDir, 'postmaster.pid'), 'utf8').catch(() => '')
  const lines = text.split('\n')
  const pid = Number(lines[0])
  if (!Number.isInteger(pid) || pid <= 0) return undefined
  return { pid, port: Number(lines[3] ?? 0), status: lines[7]?.trim() ?? '' }
}

/** The server that runs on the folder now; the file of a dead one counts as none. */
export async function livePostmaster(clusterDir: string): Promise<Postmaster | undefined> {
  const found = await readPostmaster(clusterDir)
  return found !== undefined && runsOn(found.pid, clusterDir) ? found : undefined
}

/**
 * Removes the file of a dead server where Postgres itself would not dare to:
 * its process id is in use again, by something else. Call only while holding
 * the start lock.
 */
export async function clearReusedPid(clusterDir: string): Promise<void> {
  const found = await readPostmaster(clusterDir)
  if (found === undefined || !processExists(found.pid) || runsOn(found.pid, clusterDir)) return
  await rm(join(clusterDir, 'postmaster.pid'), { force: true })
}

/** A postmaster works in its data folder, which tells it from a process that got its id later. */
function runsOn(pid: number, clusterDir: string): boolean {
  if (!processExists(pid)) return false
  if (process.platform !== 'linux') return true
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(clusterDir)
  } catch (error) {
    // Not ours to look into means it lives; a vanished or undead process has no folder.
    return (error as NodeJS.ErrnoException).code === 'EACCES'
  }
}
