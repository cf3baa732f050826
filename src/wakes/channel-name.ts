import { MillraceError } from '../errors/millrace-error.ts'

/** NAMEDATALEN - 1: LISTEN would cut a longer name in silence, and pg_notify refuses it. */
const maxChannelBytes = 63

/** The channel on which one schema's streams and queues wake their readers. */
export function internalChannel(schema: string): string {
  return `${schema}.wake`
}

/**
 * The rule for the names of user channels: 1 to 63 bytes of UTF-8, no NUL, and not the channel that
 * Millrace itself uses. Upper and lower case differ.
 *
 * @throws INVALID_NAME
 */
export function assertChannelName(channel: string, schema: string): void {
  if (typeof channel !== 'string') refuse('must be a string')
  if (channel === '') refuse('must not be empty')
  if (channel.includes('\0')) refuse('must not contain a NUL')
  if (!channel.isWellFormed()) refuse('must be well-formed Unicode')
  if (utf8Length(channel) > maxChannelBytes) refuse(`is longer than ${maxChannelBytes} bytes`)
  if (channel === internalChannel(schema)) refuse('is taken by Millrace itself')
}

function refuse(problem: string): never {
  throw new MillraceError('INVALID_NAME', `the channel name ${problem}`, { details: { field: 'channel' } })
}

/** How many bytes a text takes in UTF-8. */
export function utf8Length(text: string): number {
  return new TextEncoder().encode(text).length
}
