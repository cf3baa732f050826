import type { Hono } from 'hono'
import { errorCodes, type ErrorCode } from '../errors/codes.ts'
import { MillraceError } from '../errors/millrace-error.ts'
import { resource } from './resource.ts'

/** `GET /errors/{code}`: what the `type` of a problem document points at. Open to everyone. */
export function errorRoutes(app: Hono): void {
  resource(app, '/errors/:code', {
    GET: (c) => {
      const code = c.req.param('code')
      if (!isErrorCode(code)) throw new MillraceError('NOT_FOUND', 'there is no such error code')
      return c.json({ code, ...errorCodes[code] })
    },
  })
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(errorCodes, code)
}
