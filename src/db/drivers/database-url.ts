import { MillraceError } from '../../errors/millrace-error.ts'

/**
 * Checks a connection string before a driver sees it: the drivers' own messages print it whole, with
 * the password. The message here never shows any of it.
 *
 * @param setting the name of the setting it came from
 * @throws INVALID_SETTING
 */
export function assertDatabaseUrl(url: string, setting: string): void {
  const problem = problemOf(url)
  if (problem !== undefined) {
    throw new MillraceError('INVALID_SETTING', `${setting} ${problem}`, { details: { setting } })
  }
}

function problemOf(url: string): string | undefined {
  if (typeof url !== 'string' || url.trim() === '') return 'is empty'
  if (!/^postgres(ql)?:\/\//.test(url)) return 'must begin with postgres:// or postgresql://'
  try {
    // a Unix socket is written without a host, which the URL parser takes only without a user
    decodeURIComponent(new URL(url.replace(/@(?=[/:?])/, '@localhost')).password)
    return undefined
  } catch {
    return 'is not a valid URL: percent-encode special characters in user and password'
  }
}
