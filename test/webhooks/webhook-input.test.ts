import { describe, expect, it } from 'vitest'
import { parseWebhookChange, parseWebhookInput } from '../../src/webhooks/webhook-input.ts'

const policy = { allowInsecure: false }
const least = { stream: 'orders', url: 'https://example.com/' }

describe('the settings of a webhook', () => {
  it.each([
    [{ scheduleMs: [5_000, 1_000] }, 'scheduleMs[0]', /must be 0: the first attempt waits for nothing/],
    [{ scheduleMs: [1] }, 'scheduleMs[0]', /must be 0/],
    [{ scheduleMs: [] }, 'scheduleMs', /must not be empty/],
  ])('refuse %j, naming %s, in a new one and in a change', (settings, field, message) => {
    const problem = { code: 'INVALID_INPUT', details: { field }, message: expect.stringMatching(message) }
    expect(() => parseWebhookInput({ ...least, ...settings }, policy)).toThrow(
      expect.objectContaining(problem),
    )
    expect(() => parseWebhookChange(settings, policy)).toThrow(expect.objectContaining(problem))
  })

  it.each([[[]], [['x-a']], ['x'], [1]])('refuse the headers %j', (headers) => {
    const message = expect.stringContaining('must be a JSON object of names and values')
    const problem = { code: 'INVALID_INPUT', details: { field: 'headers' }, message }
    expect(() => parseWebhookInput({ ...least, headers }, policy)).toThrow(expect.objectContaining(problem))
    expect(() => parseWebhookChange({ headers }, policy)).toThrow(expect.objectContaining(problem))
  })

  it('refuse to change the secret, and name what does', () => {
    const problem = { details: { field: 'secret' }, message: expect.stringContaining('rotate-secret') }
    expect(() => parseWebhookChange({ secret: 'x' }, policy)).toThrow(expect.objectContaining(problem))
  })

  it.each([[[0]], [[0, 1_000]], [null]])('take the schedule %j', (scheduleMs) => {
    expect(parseWebhookChange({ scheduleMs }, policy)).toMatchObject({ scheduleMs })
  })
})
