import { describe, expect, it } from 'vitest'
import { expectJson, expectProblem } from './answers.ts'
import { freshName, type Api } from './target.ts'

/** Who gets in, and how what is not there is told. */
export function accessSuite(api: Api): void {
  const path = () => `/v1/streams/${freshName()}/events`

  describe('the API key', () => {
    it.each([
      ['none', undefined],
      ['an empty one', 'Bearer '],
      ['another one', 'Bearer another-key'],
      ['another scheme', 'Basic cm9vdDpyb290'],
      ['a huge one', `Bearer ${'k'.repeat(8000)}`],
    ])('is asked for: %s is a 401 that says how', async (_, authorization) => {
      const headers: Record<string, string> = authorization === undefined ? {} : { authorization }
      for (const address of [path(), '/v1/webhooks', '/v1/nothing']) {
        const answer = await api.raw(address, { headers })
        expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer realm="millrace"/)
        await expectProblem(answer, 'UNAUTHORIZED')
      }
    })

    it('must be the whole key and nothing else', async () => {
      for (const key of [
        api.rootKey.slice(0, -1),
        `${api.rootKey}x`,
        `${api.rootKey} x`,
        api.rootKey.toUpperCase(),
      ]) {
        const answer = await api.raw(path(), { headers: { authorization: `Bearer ${key}` } })
        const problem = await expectProblem(answer, 'UNAUTHORIZED')
        expect(JSON.stringify(problem)).not.toContain(api.rootKey.slice(0, 8))
      }
      const lower = await api.raw(path(), { headers: { authorization: `bearer ${api.rootKey}` } })
      await expectJson(lower, 200)
    })

    it('is not needed for the health checks', async () => {
      expect(await expectJson(await api.raw('/healthz'), 200)).toEqual({ status: 'ok' })
      const ready = await expectJson(await api.raw('/readyz'), 200)
      expect(ready).toMatchObject({ ready: true, database: 'ok', migrations: 'ok' })
    })
  })

  describe('an address', () => {
    it('that does not exist is a 404', async () => {
      for (const address of ['/v1/nothing', '/v1/streams/', '/', '/v1/streams/a/events/']) {
        await expectProblem(await api.call('GET', address), 'NOT_FOUND')
      }
    })

    it.each([
      ['PUT', '/v1/streams/a/events', 'POST, GET, HEAD, DELETE'],
      ['POST', '/v1/streams/a/consumers/b', 'GET, HEAD, PUT'],
      ['GET', '/v1/streams/a/consumers/b/seek', 'POST'],
      ['PUT', '/v1/webhooks', 'POST, GET, HEAD'],
      ['OPTIONS', '/v1/webhooks', 'POST, GET, HEAD'],
      ['POST', '/v1/webhooks/wh_00000000000000000000', 'GET, HEAD, PATCH, DELETE'],
      ['POST', '/healthz', 'GET, HEAD'],
    ])('answers %s %s with a 405 that names what it has', async (method, address, allow) => {
      const answer = await api.call(method, address)
      expect(answer.headers.get('allow')).toBe(allow)
      await expectProblem(answer, 'METHOD_NOT_ALLOWED')
    })

    it('answers HEAD as GET, without the body', async () => {
      const answer = await api.call('HEAD', path())
      expect(answer.status).toBe(200)
      expect(answer.headers.get('content-type')).toBe('application/json')
      expect(await answer.text()).toBe('')
      const posted = await api.call('HEAD', '/v1/streams/a/consumers/b/seek')
      expect({ status: posted.status, allow: posted.headers.get('allow') }).toEqual({
        status: 405,
        allow: 'POST',
      })
      expect(await posted.text()).toBe('')
    })

    it('says what an error code means, where a problem document points', async () => {
      const { type } = await expectProblem(await api.call('GET', '/v1/nothing'), 'NOT_FOUND')
      expect(await expectJson(await api.raw(type), 200)).toMatchObject({ code: 'NOT_FOUND', status: 404 })
      await expectProblem(await api.raw('/errors/toString'), 'NOT_FOUND')
    })

    it('is neither kept nor guessed at by anyone on the way, and open to no other origin', async () => {
      for (const answer of [await api.call('GET', path()), await api.raw('/v1/webhooks')]) {
        expect(answer.headers.get('cache-control')).toBe('no-store')
        expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
        expect(answer.headers.has('access-control-allow-origin')).toBe(false)
        await answer.body?.cancel()
      }
    })
  })
}
