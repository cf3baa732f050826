import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const fixture = 'src/streams/imports-queues.ts'

/** Lints the bad fixture as if it stood in the project; it is ignored where it lies. */
function lintFixture(): string {
  const folder = mkdtempSync(join(root, '.lint-fixture-'))
  try {
    mkdirSync(join(folder, 'src/streams'), { recursive: true })
    copyFileSync(join(root, 'test/fixtures/arrows', fixture), join(folder, fixture))
    const args = [
      join(root, 'node_modules/oxlint/bin/oxlint'),
      '-c',
      join(root, '.oxlintrc.json'),
      '-f',
      'unix',
      folder,
    ]
    return spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' }).stdout
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe('the lint rule of who may import whom', () => {
  it('refuses a sibling and a node: module, and lets a room below pass', () => {
    const report = lintFixture()
    expect(report).toContain("'../queues/send-messages.ts' import is restricted")
    expect(report).toContain("'node:fs' import is restricted")
    expect(report).not.toContain('../db/run.ts')
  })

  it('is the one that the table of arrows makes', () => {
    expect(() =>
      execFileSync(process.execPath, [join(root, 'scripts/lint-rules.mjs'), '--check']),
    ).not.toThrow()
  })
})
