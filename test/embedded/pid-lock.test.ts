import { spawnSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { lockPgliteFolder } from '../../src/embedded/pglite-lock.ts'
import { tryPidLock, waitForPidLock } from '../../src/embedded/pid-lock.ts'
import { processStart } from '../../src/embedded/process-identity.ts'

const room = join(import.meta.dirname, '../../src/embedded')
let folder: string
let path: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-lock-'))
  path = join(folder, 'lock')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function take(): () => void {
  const lock = tryPidLock(path)
  if (!lock.held) throw new Error(`held by ${lock.pid}`)
  return lock.release
}

/** Runs a module in a process of its own. */
function run(code: string): { status: number | null; stdout: string } {
  const args = ['--import', 'tsx', '--input-type=module', '--eval', code]
  return spawnSync(process.execPath, args, { encoding: 'utf8' })
}

describe('the pid lock', () => {
  it('has one holder, until that one lets go', () => {
    const release = take()
    expect(tryPidLock(path)).toEqual({ held: false, pid: process.pid })
    release()
    release()
    take()()
    expect(readdirSync(folder)).toEqual([])
  })

  it.each([
    ['a dead process', () => JSON.stringify({ pid: deadPid(), start: '1', id: 'x' })],
    ['an earlier process with the same id', () => JSON.stringify({ pid: process.pid, start: '1', id: 'x' })],
    ['a crash in the middle of writing', () => '{"pid":'],
  ])('is taken over from %s', (_whose, content) => {
    writeFileSync(path, content())
    take()()
    expect(existsSync(path)).toBe(false)
  })

  it('is not taken from a living process', async () => {
    const other = spawn('/bin/sleep', ['60'])
    writeFileSync(path, JSON.stringify({ pid: other.pid, start: processStart(other.pid!), id: 'x' }))
    expect(tryPidLock(path)).toEqual({ held: false, pid: other.pid })
    const gone = once(other, 'exit')
    other.kill('SIGKILL')
    await gone
    take()()
  })

  it('has one holder at a time when many processes fight over a dead lock', async () => {
    writeFileSync(path, JSON.stringify({ pid: deadPid(), start: '1', id: 'x' }))
    const code = `
      import { mkdirSync, rmdirSync } from 'node:fs'
      import { waitForPidLock } from ${JSON.stringify(`${room}/pid-lock.ts`)}
      for (let n = 0; n < 30; n++) {
        const release = await waitForPidLock(${JSON.stringify(path)}, 20000)
        mkdirSync(${JSON.stringify(`${folder}/inside`)}) // fails if another is inside
        await new Promise(setImmediate)
        rmdirSync(${JSON.stringify(`${folder}/inside`)})
        release()
      }`
    const args = ['--import', 'tsx', '--input-type=module', '--eval', code]
    const exits = Array.from({ length: 4 }, () =>
      once(spawn(process.execPath, args, { stdio: 'inherit' }), 'exit'),
    )
    expect(await Promise.all(exits)).toEqual(Array.from({ length: 4 }, () => [0, null]))
  })

  it('is waited for, for a time', async () => {
    const release = take()
    expect(await waitForPidLock(path, 60)).toBeUndefined()
    const waiting = waitForPidLock(path, 10_000)
    release()
    const releaseNext = await waiting
    expect(releaseNext).toBeTypeOf('function')
    releaseNext!()
  })
})

describe('the lock of a PGlite folder', () => {
  it('refuses a second opener in one clear line, however the folder is spelled', () => {
    const lock = lockPgliteFolder(join(folder, 'data'))
    symlinkSync(join(folder, 'data'), join(folder, 'alias'))
    expect(() => lockPgliteFolder(join(folder, 'alias'))).toThrow(
      expect.objectContaining({
        code: 'DATA_FOLDER_IN_USE',
        message: expect.stringMatching(
          new RegExp(`^The data folder .*/data is in use by process ${process.pid}; [^\\n]*$`),
        ) as string,
      }),
    )
    lock.release()
    lockPgliteFolder(join(folder, 'data')).release()
  })

  it('is released when its process ends, and refused to another one before', () => {
    const open = `
      import { lockPgliteFolder } from ${JSON.stringify(`${room}/pglite-lock.ts`)}
      try { lockPgliteFolder(${JSON.stringify(join(folder, 'data'))}); console.log('locked') }
      catch (error) { console.log(error.code) }`
    expect(run(open).stdout).toBe('locked\n')
    expect(existsSync(join(folder, 'data.lock'))).toBe(false)
    const lock = lockPgliteFolder(join(folder, 'data'))
    expect(run(open).stdout).toBe('DATA_FOLDER_IN_USE\n')
    lock.release()
  })
})

function deadPid(): number {
  return spawnSync('/bin/true').pid
}
