import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:net'
import { serve } from '@hono/node-server'
import type { Hono } from 'hono'
import { MillraceError } from '../errors/millrace-error.ts'

/** A server that answers. */
export interface RunningHttp {
  port: number
  /**
   * Takes no new connections and ends the idle ones; those at work end with their answer, and are cut after
   * `withinMs`.
   */
  stop(options: { withinMs: number }): Promise<void>
}

/** Where a server listens. */
export interface Address {
  port: number
  hostname: string
  /** The setting that names the port, for messages. Default `PORT`. */
  setting?: string
}

/**
 * Serves the app.
 *
 * @throws INVALID_SETTING when the port is taken or not allowed
 */
export function startHttp(app: Pick<Hono, 'fetch'>, address: Address): Promise<RunningHttp> {
  const { port, hostname } = address
  return new Promise((resolve, reject) => {
    const server = serve({ fetch: app.fetch, port, hostname }, (info) => {
      resolve({ port: info.port, stop: ({ withinMs }) => stopServer(server, answers, withinMs) })
    })
    const answers = trackAnswers(server)
    server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, address)))
  })
}

/**
 * Finds out whether the port can be had, before anything slow is started for it.
 *
 * @throws INVALID_SETTING when it is taken or not allowed
 */
export async function assertPortFree(address: Address): Promise<void> {
  const probe = createServer()
  await new Promise<void>((resolve, reject) => {
    probe.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, address)))
    probe.listen({ port: address.port, host: address.hostname }, () => probe.close(() => resolve()))
  })
}

function listenError(error: NodeJS.ErrnoException, { port, setting = 'PORT' }: Address): MillraceError {
  const problem =
    error.code === 'EADDRINUSE'
      ? `port ${port} is taken by another program: stop it, or choose another with ${setting}=${port === 65_535 ? port - 1 : port + 1}`
      : `port ${port} cannot be used: ${error.message}`
  return new MillraceError('INVALID_SETTING', problem, { details: { setting }, cause: error })
}

type Server = ReturnType<typeof serve>

/** The answers on their way. */
interface Answers {
  /** From now on each answer is the last one on its connection. */
  beLast(onEach: () => void): void
}

/** A client that keeps its connection would go on asking on it, and the server would not end before the time is up. */
function trackAnswers(server: Server): Answers {
  const open = new Set<ServerResponse>()
  let stopping: (() => void) | undefined
  const sayClose = (answer: ServerResponse): void => {
    if (!answer.headersSent) answer.setHeader('connection', 'close')
  }
  // before the app's own listener, which may answer at once
  server.prependListener('request', (_request: IncomingMessage, answer: ServerResponse) => {
    open.add(answer)
    if (stopping !== undefined) sayClose(answer)
    answer.once('close', () => {
      open.delete(answer)
      stopping?.()
    })
  })
  return {
    beLast(onEach) {
      stopping = onEach
      for (const answer of open) sayClose(answer)
    },
  }
}

async function stopServer(server: Server, answers: Answers, withinMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => void server.close(() => resolve()))
  if (!('closeIdleConnections' in server)) return closed
  // one whose headers had gone out already said nothing of the end
  answers.beLast(() => server.closeIdleConnections())
  server.closeIdleConnections()
  const timer = setTimeout(() => server.closeAllConnections(), withinMs)
  await closed
  clearTimeout(timer)
}
