import { invalidInput, isMillraceError, MillraceError } from '../errors/millrace-error.ts'
import { errorOfAnswer, type Answer } from './answer-error.ts'
import type { ClientOptions } from './types.ts'

/** A request to the server. */
export interface ApiRequest {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Begins with `/`; its parts are encoded already, see {@link segment}. */
  path: string
  query?: Record<string, string | number | undefined>
  body?: string
  /** Default `application/json`. */
  contentType?: string
  headers?: Record<string, string>
  signal?: AbortSignal | undefined
  /** What the server has been asked to wait, which the time-out does not count. */
  waitMs?: number
  /** A status beside 2xx that is no failure. */
  alsoOk?: number
}

/** Sends requests of one client. */
export type Send = (request: ApiRequest) => Promise<Answer>

const defaultTimeoutMs = 30_000

/**
 * Checks a client's options and returns what sends its requests.
 *
 * @throws INVALID_INPUT (fields `url`, `key`)
 */
export function createSend(options: ClientOptions): Send {
  const base = baseUrl(options.url)
  const authorization = bearer(options.key ?? null)
  // bare, the global fetch would lose its `this` on workerd ("Illegal invocation")
  const fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init))
  return async (request) => {
    const { method = 'GET', body, headers } = request
    const timeoutMs = (options.timeoutMs ?? defaultTimeoutMs) + (request.waitMs ?? 0)
    const timeout = AbortSignal.timeout(timeoutMs)
    const init: RequestInit = {
      method,
      headers: {
        ...authorization,
        ...(body === undefined ? {} : { 'content-type': request.contentType ?? 'application/json' }),
        ...headers,
      },
      signal: request.signal === undefined ? timeout : AbortSignal.any([request.signal, timeout]),
      ...(body === undefined ? {} : { body }),
    }
    const answer = await exchange(fetch, `${base}${request.path}${queryText(request.query)}`, init).catch(
      (error: unknown) => {
        throw unanswered(error, { base, signal: request.signal, late: timeout.aborted ? timeoutMs : null })
      },
    )
    if ((answer.status >= 200 && answer.status < 300) || answer.status === request.alsoOk) return answer
    throw errorOfAnswer(answer)
  }
}

/**
 * A name as one part of a path.
 *
 * @throws INVALID_NAME for the names that URLs cannot carry
 */
export function segment(kind: string, name: string): string {
  // every URL parser resolves these two, however they are encoded
  if (name === '' || name === '.' || name === '..' || !name.isWellFormed()) {
    throw new MillraceError(
      'INVALID_NAME',
      `the ${kind} name ${JSON.stringify(name)} cannot stand in a URL`,
      {
        details: { field: kind },
      },
    )
  }
  return encodeURIComponent(name)
}

/**
 * The JSON of an answer.
 *
 * @throws INTERNAL when it is none: something else answers at the address
 */
export function jsonOf<T>(answer: Answer): T {
  try {
    return JSON.parse(answer.text) as T
  } catch {
    throw errorOfAnswer(answer)
  }
}

async function exchange(fetch: typeof globalThis.fetch, url: string, init: RequestInit): Promise<Answer> {
  const response = await fetch(url, init)
  return { status: response.status, headers: response.headers, text: await response.text() }
}

function unanswered(
  error: unknown,
  { base, signal, late }: { base: string; signal: AbortSignal | undefined; late: number | null },
): MillraceError {
  if (isMillraceError(error)) return error
  if (signal?.aborted) return new MillraceError('ABORTED', 'the call was aborted', { cause: signal.reason })
  const problem = late === null ? `nothing answers at ${base}` : `no answer from ${base} within ${late} ms`
  return new MillraceError('SERVER_UNREACHABLE', problem, { details: { url: base }, cause: error })
}

function baseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw invalidInput('url', 'must begin with http:// or https://')
  }
  // fetch refuses them, and they would stand in every error message
  if (url.username !== '' || url.password !== '')
    throw invalidInput('url', 'must not hold a user or password')
  if (url.search !== '' || url.hash !== '') throw invalidInput('url', 'must not hold a query or a fragment')
  return url.href.replace(/\/+$/, '')
}

function bearer(key: string | null): Record<string, string> {
  if (key === null) return {}
  if (!/^[\x21-\x7e]+$/.test(key)) throw invalidInput('key', 'must be printable ASCII without spaces')
  return { authorization: `Bearer ${key}` }
}

function queryText(query: ApiRequest['query'] = {}): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  )
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`
}
