import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { errorDocs } from '../../scripts/error-docs.ts'

describe('docs/errors.md', () => {
  it('is what the table of codes makes: `npm run docs:errors` writes it', () => {
    expect(readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8')).toBe(errorDocs())
  })
})
