import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readSettings } from '../../src/settings.ts'
import { unknownSettings, warnOfUnknownSettings } from '../../src/unknown-settings.ts'
import { targetPolicyOf } from '../../src/webhooks/allowed-targets.ts'
import { checkTargetUrl, isPublicAddress } from '../../src/webhooks/target-url.ts'

const allowed = (text: string) => readSettings({ MILLRACE_ALLOWED_TARGETS: text })

describe('MILLRACE_ALLOWED_TARGETS', () => {
  it('is empty by default, and else a list of ranges', () => {
    expect(readSettings({}).allowedTargets).toEqual([])
    expect(allowed(' 10.0.0.0/8, fd00::/8 ,192.168.7.1/32').allowedTargets).toEqual([
      '10.0.0.0/8',
      'fd00::/8',
      '192.168.7.1/32',
    ])
  })

  it.each([
    ['10.0.0.0', 'lacks its length: write 10.0.0.0/32'],
    ['fd00::1', 'lacks its length: write fd00::1/128'],
    ['10.0.0.1/8', 'has bits beyond its length: 10.0.0.0/8 may be meant'],
    ['fd00::1/8', 'has bits beyond its length: fd00::/8 may be meant'],
    ['10.0.0.0/33', 'must end in a length from 0 to 32'],
    ['fd00::/129', 'must end in a length from 0 to 128'],
    ['10.0.0.0/08', 'must end in a length'],
    ['10.0.0.0/', 'must end in a length'],
    ['10.0.0.0/-1', 'must end in a length'],
    ['10.0.0.0/8/8', 'is no range'],
    ['10.0.0/8', 'is no range'],
    ['012.0.0.0/8', 'is no range'],
    ['0x0a.0.0.0/8', 'is no range'],
    ['[fd00::]/8', 'is no range'],
    ['example.com/8', 'is no range'],
    ['10.0.0.0/8,', 'holds "", which is no range'],
    ['10.0.0.0/8;fd00::/8', 'is no range'],
  ])('refuses %s, and says why', (text, problem) => {
    expect(() => allowed(text)).toThrow(
      expect.objectContaining({
        code: 'INVALID_SETTING',
        message: expect.stringContaining(problem),
        details: { setting: 'MILLRACE_ALLOWED_TARGETS' },
      }),
    )
  })

  it('lets exactly those ranges through, over https alone (W6)', () => {
    const policy = targetPolicyOf(allowed('10.1.0.0/16,fd00::/8'))
    const verdict = (url: string): boolean => checkTargetUrl(url, policy).ok
    expect(verdict('https://10.1.2.3/')).toBe(true)
    expect(verdict('https://[fd12::1]/')).toBe(true)
    for (const url of ['http://10.1.2.3/', 'https://10.2.0.1/', 'https://127.0.0.1/', 'https://[fe80::1]/']) {
      expect([url, verdict(url)]).toEqual([url, false])
    }
    // the same address in the clothes of another family
    expect(isPublicAddress('::ffff:10.1.2.3', policy)).toBe(false)
    expect(isPublicAddress('10.1.255.255', policy)).toBe(true)
    expect(isPublicAddress('10.2.0.0', policy)).toBe(false)
  })
})

describe('MILLRACE_ENVIRONMENT', () => {
  it.each(['production', 'preview-12', 'pr_7.eu', 'x'.repeat(64)])('W7: takes %s', (name) => {
    expect(readSettings({ MILLRACE_ENVIRONMENT: name }).environment).toBe(name)
  })

  it.each(['-x', 'a b', 'a/b', 'ü', 'a\u0000', 'x'.repeat(65)])('W7: refuses %j', (name) => {
    expect(() => readSettings({ MILLRACE_ENVIRONMENT: name })).toThrow(
      /^MILLRACE_ENVIRONMENT must be 1 to 64/,
    )
  })
})

describe('variables that nothing reads', () => {
  it('are named, with the one that was probably meant', () => {
    const env = {
      MILLRACE_ROOTKEY: 'x',
      MILLRACE_ALLOWED_TARGET: 'x',
      MILLRACE_LEASE: 'x',
      MILLRACE_COLOUR_OF_THE_BARN: 'x',
      MILLRACE_ROOT_KEY: 'x',
      PORT: '1',
      OTHER: 'x',
    }
    expect(unknownSettings(env)).toEqual([
      { name: 'MILLRACE_ALLOWED_TARGET', nearest: 'MILLRACE_ALLOWED_TARGETS' },
      { name: 'MILLRACE_COLOUR_OF_THE_BARN', nearest: null },
      { name: 'MILLRACE_LEASE', nearest: 'MILLRACE_LEASE_MS' },
      { name: 'MILLRACE_ROOTKEY', nearest: 'MILLRACE_ROOT_KEY' },
    ])
  })

  it('are warned of, without their values', () => {
    const lines: string[] = []
    const log = { warn: (facts: object, message: string) => void lines.push(JSON.stringify(facts) + message) }
    warnOfUnknownSettings({ MILLRACE_ROOTKEY: 'hush', MILLRACE_KEY: 'x' }, log)
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain('nothing reads the variable MILLRACE_ROOTKEY: is MILLRACE_ROOT_KEY meant?')
    expect(lines[0]).not.toContain('hush')
  })

  it('are none of those that the code reads', () => {
    const files = ['src', 'workers'].flatMap((folder) =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts') && name !== 'unknown-settings.ts')
        .map((name) => readFileSync(join(folder, name), 'utf8')),
    )
    const read = files.flatMap((text) => text.match(/MILLRACE_[A-Z_]+/g) ?? [])
    expect(read.length).toBeGreaterThan(20)
    const env = Object.fromEntries(read.map((name) => [name, '']))
    expect(unknownSettings(env)).toEqual([])
  })
})
