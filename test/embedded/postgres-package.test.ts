import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  unlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { completePackage, findPostgresPackage, program } from '../../src/embedded/postgres-package.ts'
import { placePrograms, postgresIdentity } from '../../src/embedded/postgres-user.ts'

let root: string

beforeAll(async () => {
  const found = await findPostgresPackage()
  root = mkdtempSync(join(tmpdir(), 'millrace-package-'))
  cpSync(found.root, root, { recursive: true, verbatimSymlinks: true })
  // As npm leaves it when it does not run install scripts.
  for (const { target } of links()) unlinkSync(join(root, target))
  chmodSync(program(root, 'postgres'), 0o644)
})

afterAll(() => rmSync(root, { recursive: true, force: true }))

function links(): { source: string; target: string }[] {
  return JSON.parse(readFileSync(join(root, 'native/pg-symlinks.json'), 'utf8')) as {
    source: string
    target: string
  }[]
}

function versionOf(folder: string): string {
  return spawnSync(program(folder, 'postgres'), ['--version'], { encoding: 'utf8' }).stdout ?? ''
}

describe('a package whose install script did not run', () => {
  it('is completed, also by several at once', async () => {
    expect(versionOf(root)).toBe('')
    await Promise.all([completePackage(root), completePackage(root), completePackage(root)])
    expect(versionOf(root)).toContain('PostgreSQL')
    expect(links().length).toBeGreaterThan(0)
    for (const { target } of links()) expect(existsSync(join(root, target)), target).toBe(true)
    expect(readlinkSync(join(root, links()[0]!.target))).not.toContain('/')
  })
})

describe.runIf(process.getuid?.() === 0)('a package that the Postgres user cannot reach', () => {
  const copy = (): string =>
    `/var/lib/millrace/programs-test-${process.pid}-${process.platform}-${process.arch}`
  afterAll(() => rmSync(copy(), { recursive: true, force: true }))

  it('is copied to where it can', async () => {
    chmodSync(root, 0o700)
    const identity = await postgresIdentity()
    const placed = await placePrograms({ root, version: `test-${process.pid}` }, identity)
    expect(placed).toBe(copy())
    const { stdout } = spawnSync(program(placed, 'postgres'), ['--version'], {
      ...identity,
      cwd: '/',
      encoding: 'utf8',
    })
    expect(stdout).toMatch(/^postgres \(PostgreSQL\) 18/)
    expect(await placePrograms({ root, version: `test-${process.pid}` }, identity)).toBe(copy())
  })
})
