import type { Context, Hono } from 'hono'
import { MillraceError } from '../errors/millrace-error.ts'
import { assertAccess, type Method } from './access.ts'
import { problemResponse } from './problem.ts'

/** Answers one method of an address. */
export type Handler<Path extends string> = (c: Context<object, Path>) => Promise<Response> | Response

/**
 * Registers an address with the methods it has; a key must cover each (see access.ts). Any other method gets a 405 that names them in
 * `Allow`; HEAD is answered wherever GET is.
 */
export function resource<Path extends string>(
  app: Hono,
  path: Path,
  handlers: Partial<Record<Method, Handler<Path>>>,
): void {
  const methods = Object.entries(handlers)
  for (const [method, handler] of methods) {
    app.on(method, path, (c) => {
      assertAccess(c, method, path)
      return (handler as Handler<string>)(c)
    })
  }
  const allow = methods.flatMap(([method]) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
  app.all(path, (c) => {
    const error = new MillraceError('METHOD_NOT_ALLOWED', `${c.req.method} is not one of ${allow}`)
    return problemResponse(error, { allow })
  })
}
