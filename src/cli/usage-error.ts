import { CommanderError } from 'commander'

/** The command was called in a way that cannot work: one line, exit code 2. */
export function usageError(message: string): CommanderError {
  return new CommanderError(2, 'millrace.usage', message)
}
