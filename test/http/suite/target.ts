import type { Db } from '../../../src/db/port.ts'

/** The app under test, wherever it runs: what the suite needs of it. */
export interface HttpTarget {
  /** Sends a request to the app. */
  fetch(request: Request): Promise<Response>
  /** A node-postgres database, for looking inside. */
  db: Db
  rootKey: string
  close(): Promise<void>
}

/** The target as the tests see it: bound once per suite, with names of its own for every test. */
export interface Api {
  readonly db: Db
  readonly rootKey: string
  /** Sends a request with the root key; a body that is no string goes out as JSON. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>
  /** Sends a request as it is, with no key. */
  raw(path: string, init?: RequestInit): Promise<Response>
}

/** Node's fetch wants `duplex` with a streamed body; the type does not know it. */
export type StreamingInit = RequestInit & { duplex?: 'half' }

const origin = 'http://millrace.test'

/** Wraps a target, which may be made only after the tests are declared. */
export function createApi(target: () => HttpTarget): Api {
  const raw = (path: string, init?: StreamingInit) => target().fetch(new Request(`${origin}${path}`, init))
  return {
    get db() {
      return target().db
    },
    get rootKey() {
      return target().rootKey
    },
    raw,
    call(method, path, body, headers = {}) {
      const init: RequestInit = {
        method,
        headers: { authorization: `Bearer ${target().rootKey}`, ...headers },
      }
      if (body === undefined) return raw(path, init)
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      return raw(path, {
        ...init,
        body: text,
        headers: { 'content-type': 'application/json', ...init.headers },
      })
    },
  }
}

let counter = 0

/** A name that no other test of the run uses. */
export function freshName(prefix = 's'): string {
  counter += 1
  return `${prefix}-${counter}-${crypto.randomUUID().slice(0, 8)}`
}
