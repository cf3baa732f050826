import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createClient, type Client } from '../client/client.ts'
import { isMillraceError, MillraceError } from '../errors/millrace-error.ts'
import type { Io } from './io.ts'

/** Which server the commands talk to, and as whom. */
export interface Server {
  url: string
  /** The key, and where it came from, for messages. Null: none was found. */
  key: { value: string; source: string } | null
}

const defaultUrl = 'http://localhost:8787'

/**
 * MILLRACE_URL (default `http://localhost:8787`), with MILLRACE_KEY, MILLRACE_ROOT_KEY, or the key that
 * a local server has left in its data folder.
 */
export function findServer(env: Io['env']): Server {
  const url = env.MILLRACE_URL?.trim() || defaultUrl
  for (const source of ['MILLRACE_KEY', 'MILLRACE_ROOT_KEY']) {
    const value = env[source]?.trim()
    if (value) return { url, key: { value, source } }
  }
  // the local server's key is nothing for a server elsewhere
  return { url, key: isLoopback(url) ? keyFromFolder(env) : null }
}

/**
 * A client of the server that the environment names.
 *
 * @throws INVALID_SETTING
 */
export function connect(io: Io): Client {
  const { url, key } = findServer(io.env)
  try {
    return createClient({ url, key: key?.value ?? null, fetch: io.fetch })
  } catch (error) {
    if (!isMillraceError(error)) throw error
    const setting = error.details.field === 'url' ? 'MILLRACE_URL' : (key?.source ?? 'MILLRACE_KEY')
    const problem = error.message.replace(/^\w+ /, '')
    throw new MillraceError('INVALID_SETTING', `${setting} ${problem}`, { details: { setting } })
  }
}

/** Whether an address is this machine's own. */
export function isLoopback(url: string): boolean {
  if (!URL.canParse(url)) return false
  const { hostname } = new URL(url)
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname)
}

function keyFromFolder(env: Io['env']): Server['key'] {
  const source = join(env.MILLRACE_DATA_DIR?.trim() || '.millrace', 'root-key')
  try {
    const value = readFileSync(source, 'utf8').trim()
    return value === '' ? null : { value, source }
  } catch {
    // absent, or of another user: the server will say that it wants a key
    return null
  }
}
