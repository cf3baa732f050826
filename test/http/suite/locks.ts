import { describe, expect, it } from 'vitest'
import { expectJson, expectProblem } from './answers.ts'
import { freshName, type Api } from './target.ts'

interface Lock {
  token: string
  fence: number
  until: string
}

/** Locks over HTTP. */
export function lockSuite(api: Api): void {
  const take = (path: string, body: object = { ttlMs: 60_000 }) => api.call('POST', path, body)

  describe('a lock', () => {
    it('Q4: has one holder at a time, each with a higher fence', async () => {
      const path = `/v1/locks/${freshName('l')}`
      const answers = await Promise.all(Array.from({ length: 4 }, () => take(path)))
      expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409])
      const first = (await answers.find(({ status }) => status === 200)!.json()) as Lock
      await expectProblem(await take(path, { ttlMs: 1000, waitMs: 1 }), 'CONFLICT')
      expect((await api.call('DELETE', path, { token: first.token })).status).toBe(204)
      const second = await expectJson<Lock>(await take(path), 200)
      expect(second.fence).toBeGreaterThan(first.fence)
    })

    it('is renewed and released by its holder only, and shows no token to others', async () => {
      const path = `/v1/locks/${freshName('l')}`
      expect(await expectJson(await api.call('GET', path), 200)).toMatchObject({ held: false, fence: null })
      const lock = await expectJson<Lock>(await take(path), 200)
      const stranger = crypto.randomUUID()
      await expectProblem(await api.call('PUT', path, { token: stranger, ttlMs: 1000 }), 'LEASE_LOST')
      await expectProblem(await api.call('DELETE', path, { token: stranger }), 'LEASE_LOST')
      const renewed = await api.call('PUT', path, { token: lock.token, ttlMs: 3_600_000 })
      const { until } = await expectJson<Lock>(renewed, 200)
      expect(Date.parse(until)).toBeGreaterThan(Date.parse(lock.until))
      const shown = await expectJson<object>(await api.call('GET', path), 200)
      expect(shown).toMatchObject({ held: true, fence: lock.fence, until })
      expect(shown).not.toHaveProperty('token')
      await api.call('DELETE', path, { token: lock.token })
      expect(await expectJson(await api.call('GET', path), 200)).toMatchObject({ held: false })
      await expectProblem(await api.call('PUT', path, { token: lock.token, ttlMs: 1000 }), 'LEASE_LOST')
    })

    it.each([
      [{}, 'ttlMs'],
      [{ ttlMs: 1 }, 'ttlMs'],
      [{ ttlMs: 1000, waitMs: 30_001 }, 'waitMs'],
      [{ ttlMs: 1000, waitMs: -1 }, 'waitMs'],
      [{ ttlMs: 1000, wait: 1 }, 'wait'],
    ])('is not taken with %j', async (body, field) => {
      const path = `/v1/locks/${freshName('l')}`
      await expectProblem(await take(path, body), 'INVALID_INPUT', field)
      expect(await expectJson(await api.call('GET', path), 200)).toMatchObject({ held: false })
    })

    it('keeps the names of Millrace itself to Millrace', async () => {
      await expectProblem(await take('/v1/locks/millrace.schedules'), 'INVALID_NAME', 'lock')
    })
  })
}
