import { createServer } from 'node:net'
import { serve } from '@hono/node-server'
import type { Hono } from 'hono'
import { MillraceError } from '../errors/millrace-error.ts'

/** A server that answers. */
export interface RunningHttp {
  port: number
  /** Takes no new connections and ends the idle ones; those at work get until `withinMs`. */
  stop(options: { withinMs: number }): Promise<void>
}

/**
 * Serves the app.
 *
 * @throws INVALID_SETTING when the port is taken or not allowed
 */
export function startHttp(app: Hono, options: { port: number; hostname: string }): Promise<RunningHttp> {
  return new Promise((resolve, reject) => {
    const server = serve({ fetch: app.fetch, ...options }, (info) => {
      resolve({ port: info.port, stop: ({ withinMs }) => stopServer(server, withinMs) })
    })
    server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, options.port)))
  })
}

/**
 * Finds out whether the port can be had, before anything slow is started for it.
 *
 * @throws INVALID_SETTING when it is taken or not allowed
 */
export async function assertPortFree(options: { port: number; hostname: string }): Promise<void> {
  const probe = createServer()
  await new Promise<void>((resolve, reject) => {
    probe.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, options.port)))
    probe.listen({ port: options.port, host: options.hostname }, () => probe.close(() => resolve()))
  })
}

function listenError(error: NodeJS.ErrnoException, port: number): MillraceError {
  const problem =
    error.code === 'EADDRINUSE'
      ? `port ${port} is taken by another program: stop it, or choose another with PORT=8788`
      : `port ${port} cannot be used: ${error.message}`
  return new MillraceError('INVALID_SETTING', problem, { details: { setting: 'PORT' }, cause: error })
}

async function stopServer(server: ReturnType<typeof serve>, withinMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => void server.close(() => resolve()))
  if (!('closeIdleConnections' in server)) return closed
  server.closeIdleConnections()
  const timer = setTimeout(() => server.closeAllConnections(), withinMs)
  await closed
  clearTimeout(timer)
}
