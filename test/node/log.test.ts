import { describe, expect, it } from 'vitest'
import { createJsonLog, createTerminalLog } from '../../src/node/log.ts'
import { awkward } from '../support/awkward-throws.ts'

describe('a log', () => {
  it.each(awkward)('has a line for %s', (_, thrown) => {
    const lines: string[] = []
    createJsonLog({ to: { write: (line) => void lines.push(line) } }).warn({ err: thrown }, 'It failed.')
    createTerminalLog((line) => void lines.push(line)).warn({ err: thrown }, 'It failed.')
    expect(JSON.parse(lines[0]!)).toMatchObject({ msg: 'It failed.', err: { message: expect.any(String) } })
    expect(lines[1]).toMatch(/^! It failed\.: ./)
  })
})
