import { MillraceError } from '../../errors/millrace-error.ts'

/** What every call on a closed store fails with. */
export function storeClosed(): MillraceError {
  return new MillraceError('STORE_CLOSED', 'the store was closed')
}
