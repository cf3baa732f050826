import type { Hono } from 'hono'
import { resource } from '../resource.ts'
import { docsPage } from './docs-page.ts'
import { openApiDocument } from './document.ts'

/**
 * `GET /openapi.json` and `GET /docs`, open to everyone, for the app's option `docRoutes`: the description is
 * not loaded where it is not asked for.
 */
export function docRoutes(version: string): (app: Hono) => void {
  const document = openApiDocument(version)
  const json = JSON.stringify(document)
  const page = docsPage(document)
  return (app) => {
    resource(app, '/openapi.json', { GET: (c) => c.body(json, 200, { 'content-type': 'application/json' }) })
    resource(app, '/docs', {
      GET: (c) =>
        c.html(page, 200, { 'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'" }),
    })
  }
}
