import type { Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { routeScopes } from '../../src/http/access.ts'
import { createApp } from '../../src/http/app.ts'
import { docRoutes } from '../../src/http/openapi/doc-routes.ts'
import { openApiDocument, type OpenApi } from '../../src/http/openapi/document.ts'
import { workRoutes } from '../../src/http/work-routes.ts'
import { createSystemPorts } from '../../src/system-ports.ts'
import { departures, problemsOf } from './suite/conformance.ts'

/** All routes; nothing here asks the database. */
function wholeApp(): Hono {
  return createApp({
    db: createNodePostgresDb({ url: 'postgres://nobody@127.0.0.1:1/nowhere' }),
    rootKey: 'a-root-key-for-these-tests',
    ports: createSystemPorts(),
    targetPolicy: {},
    sealer: null,
    workRoutes,
    docRoutes: docRoutes('1.2.3'),
  })
}

const routesOf = (app: Hono): string[] =>
  app.routes
    // ALL is what answers other methods with a 405, and the middleware
    .filter(({ method }) => method !== 'ALL')
    .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`)

const described = ({ paths }: OpenApi): string[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )

describe('the OpenAPI document', () => {
  it('describes every route that is served, and none that is not', () => {
    expect(described(openApiDocument('1')).toSorted()).toEqual(routesOf(wholeApp()).toSorted())
  })

  it('is served with the page made from it, to everyone', async () => {
    const app = wholeApp()
    const json = await app.request('/openapi.json')
    expect(json.headers.get('content-type')).toBe('application/json')
    const document = (await json.json()) as OpenApi
    expect(document).toMatchObject({ openapi: '3.1.0', info: { version: '1.2.3' } })
    const page = await app.request('/docs')
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    const html = await page.text()
    for (const path of Object.keys(document.paths)) expect(html).toContain(`<code>${path}`)
    expect(html).not.toContain('<script')
  })

  it('names each operation once, declares what its path takes, and refers to nothing that is not there', () => {
    const document = openApiDocument('1')
    const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.values(methods).map((operation) => ({ path, operation })),
    )
    const ids = operations.map(({ operation }) => operation.operationId)
    expect(new Set(ids).size).toBe(ids.length)
    for (const { path, operation } of operations) {
      const inPath = ((operation.parameters ?? []) as { in: string; name: string }[]).filter(
        (one) => one.in === 'path',
      )
      expect(inPath.map(({ name }) => `{${name}}`)).toEqual(path.match(/\{\w+\}/g) ?? [])
    }
    const references = JSON.stringify(document).match(/#\/components\/schemas\/\w+/g) ?? []
    for (const reference of new Set(references))
      expect(document.components.schemas).toHaveProperty(reference.split('/').at(-1)!)
  })

  it('says which scope each route needs, by the table that decides it', () => {
    const { paths } = openApiDocument('1')
    for (const [path, methods] of Object.entries(routeScopes)) {
      for (const [method, scope] of Object.entries(methods)) {
        const operation = paths[path.replace(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()]
        expect([method, path, operation?.description]).toEqual([
          method,
          path,
          `Needs the scope \`${scope}\`.`,
        ])
      }
    }
  })
})

describe('holding answers against it', () => {
  const answer = { method: 'GET', path: '/v1/topics/t', status: 200, type: 'application/json' }
  it.each([
    ['as described', '{"topic":"t","queues":["q"],"next":null}', []],
    ['with a member too few', '{"topic":"t","queues":[]}', ['body.next is missing']],
    ['with one too many', '{"topic":"t","queues":[],"next":null,"x":1}', ['body.x is not described']],
    ['of another type', '{"topic":"t","queues":[1],"next":null}', ['body.queues[0] is 1, not string']],
  ])('finds one %s', (_, text, found) => {
    expect(problemsOf({ ...answer, text })).toEqual(found)
  })

  it('knows statuses, media types and addresses', () => {
    expect(problemsOf({ ...answer, status: 201, text: '{}' })).toEqual(['201 is not among its answers'])
    expect(problemsOf({ ...answer, type: 'text/html', text: '' })).toEqual([
      'text/html is not among its media types',
    ])
    expect(problemsOf({ ...answer, path: '/v1/none', text: '{}' })).toEqual(['there is no such operation'])
    expect(problemsOf({ ...answer, status: 404, text: '{}' })).toEqual(['an error is application/json'])
    expect(departures('x', { type: 'string', enum: ['y'] }, 'it')).toEqual(['it is x'])
  })
})
