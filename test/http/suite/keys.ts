import { describe, expect, it } from 'vitest'
import { routeScopes } from '../../../src/http/access.ts'
import { expectJson, expectProblem } from './answers.ts'
import { freshName, type Api } from './target.ts'

interface Created {
  id: string
  key: string
}

/** API keys over HTTP: how they are made, what each opens, and that a revoked one opens nothing. */
export function keySuite(api: Api): void {
  const create = async (input: object): Promise<Created> =>
    expectJson<Created>(await api.call('POST', '/v1/keys', { name: 'for a test', ...input }), 201)
  const as = ({ key }: Created, method: string, path: string, body?: unknown) =>
    api.raw(path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })

  describe('an API key', () => {
    it('is shown once, stored as a hash, listed without it, and opens nothing once revoked', async () => {
      const made = await create({ scopes: ['read', 'publish'] })
      expect(made).toMatchObject({
        id: expect.stringMatching(/^key_[0-9a-f]{20}$/) as string,
        key: expect.stringMatching(/^mr_key_[0-9a-f]{48}$/) as string,
        name: 'for a test',
        scopes: ['publish', 'read'],
        streamPrefix: null,
      })
      const stored = await api.db.drizzle.select().from(api.db.tables.apiKeys)
      expect(JSON.stringify(stored)).toContain(made.id)
      expect(JSON.stringify(stored)).not.toContain(made.key.slice(7, 20))
      const before = made.id.slice(0, -1)
      const page = await expectJson<{ keys: object[] }>(
        await api.call('GET', `/v1/keys?limit=1&cursor=${before}`),
        200,
      )
      const { key: _, ...shown } = made
      expect(page.keys).toEqual([shown])
      await expectJson(await as(made, 'GET', '/v1/streams'), 200)
      expect((await api.call('DELETE', `/v1/keys/${made.id}`)).status).toBe(204)
      await expectProblem(await as(made, 'GET', '/v1/streams'), 'UNAUTHORIZED')
      await expectProblem(await api.call('DELETE', `/v1/keys/${made.id}`), 'NOT_FOUND')
    })

    it.each(['publish', 'read', 'manage'] as const)(
      'with the scope %s opens what needs it and nothing else',
      async (own) => {
        const key = await create({ scopes: [own] })
        for (const [path, methods] of Object.entries(routeScopes)) {
          // as the work routes may not be served here, an address that is not there is passed over
          const address = path.replace(/:\w+/g, 'scoped')
          for (const [method, scope] of Object.entries(methods)) {
            // a parameter that no address knows: refused before anything is done, but after the key was looked at
            const answer = await as(key, method, `${address}?nothing=1`, method === 'GET' ? undefined : {})
            const { code } = (await answer.json().catch(() => ({}))) as { code?: string }
            const passed = code !== 'FORBIDDEN'
            expect({ method, path, passed }).toEqual({
              method,
              path,
              passed: code === 'NOT_FOUND' || scope === own,
            })
          }
        }
        for (const address of ['/v1/webhooks', '/v1/keys']) {
          const answer = await as(key, 'GET', address)
          expect(answer.status).toBe(own === 'manage' ? 200 : 403)
          await answer.body?.cancel()
        }
      },
    )

    it('says which scope it lacks', async () => {
      const key = await create({ scopes: ['read'] })
      const answer = await as(key, 'POST', `/v1/streams/${freshName()}/events`, { type: 'a', data: 1 })
      expect(await expectProblem(answer, 'FORBIDDEN')).toMatchObject({ scope: 'publish' })
    })

    it('with a stream prefix reaches only such streams', async () => {
      const prefix = `${freshName('tenant')}.`
      const key = await create({ scopes: ['publish', 'read', 'manage'], streamPrefix: prefix })
      const event = { type: 'a', data: 1 }
      await expectJson(await as(key, 'POST', `/v1/streams/${prefix}orders/events`, event), 201)
      await expectJson(await as(key, 'GET', `/v1/streams/${prefix}orders/consumers/c`), 200)
      const mine = await expectJson<{ streams: object[] }>(
        await as(key, 'GET', `/v1/streams?prefix=${prefix}`),
        200,
      )
      expect(mine.streams).toHaveLength(1)
      for (const [method, path] of [
        ['POST', `/v1/streams/${prefix.slice(0, -1)}/events`],
        ['GET', '/v1/streams'],
        ['GET', `/v1/streams?prefix=${prefix.slice(0, -1)}`],
        ['GET', '/v1/webhooks'],
        ['POST', '/v1/webhooks'],
        ['GET', '/v1/keys'],
        ['POST', '/v1/keys'],
      ] as const) {
        await expectProblem(await as(key, method, path, method === 'POST' ? event : undefined), 'FORBIDDEN')
      }
    })

    it('gives away no more than it has', async () => {
      const manager = await create({ scopes: ['manage'] })
      await expectProblem(
        await as(manager, 'POST', '/v1/keys', { name: 'n', scopes: ['manage', 'publish'] }),
        'FORBIDDEN',
      )
      await expectJson(await as(manager, 'POST', '/v1/keys', { name: 'n', scopes: ['manage'] }), 201)
    })

    it.each([
      [{ scopes: ['read'], name: '' }, 'name'],
      [{ scopes: [] }, 'scopes'],
      [{ scopes: ['everything'] }, 'scopes'],
      [{ scopes: ['read'], streamPrefix: '' }, 'streamPrefix'],
      [{ scopes: ['read'], expires: 1 }, 'expires'],
    ])('is not made of %j', async (input, field) => {
      const problem = await expectProblem(
        await api.call('POST', '/v1/keys', { name: 'n', ...input }),
        'INVALID_INPUT',
      )
      expect(problem.field).toMatch(new RegExp(`^${field}`))
    })

    it('that was never made, or has not the form of one, opens nothing', async () => {
      for (const key of [`mr_key_${'0'.repeat(48)}`, 'mr_key_', "' or true --"]) {
        await expectProblem(await as({ id: '', key }, 'GET', '/v1/streams'), 'UNAUTHORIZED')
      }
    })
  })
}
