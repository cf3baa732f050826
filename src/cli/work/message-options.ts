import type { Command } from 'commander'
import type { NewMessage } from '../../client/queues.ts'
import { decimal, pair, wholeNumber } from '../options.ts'

const day = 86_400_000

/** The options of a message beside its data, as they were parsed. */
export interface MessageFlags {
  type?: string
  key?: string
  header?: Record<string, string>
  priority?: number
  delayMs?: number
  at?: string
  maxAttempts?: number
  leaseMs?: number
  backoffBaseMs?: number
  backoffFactor?: number
  backoffMaxMs?: number
  dedupeKey?: string
  dedupeWindowMs?: number
}

/** Adds all that a message can say about itself. */
export function withMessageOptions(command: Command): Command {
  return command
    .option('-t, --type <type>', 'by which a claim may choose')
    .option('-k, --key <key>', 'messages of one key are worked one after the other')
    .option('--header <name=value>', 'metadata that travels with the message; may be repeated', pair)
    .option('--priority <n>', 'smaller is claimed first (default 0)', wholeNumber(-32_768, 32_767))
    .option('--delay-ms <ms>', 'not before so many milliseconds from now', wholeNumber(0, 366 * day))
    .option('--at <time>', 'or not before this time, such as 2030-01-31T09:00:00Z')
    .option('--max-attempts <n>', 'after so many it is dead (default 10)', wholeNumber(1, 1000))
    .option('--lease-ms <ms>', 'how long a claim holds it (default 30000)', wholeNumber(1, day))
    .option(
      '--backoff-base-ms <ms>',
      'how long the first retry waits (default 1000)',
      wholeNumber(0, 7 * day),
    )
    .option('--backoff-factor <n>', 'by which each further one waits longer (default 2)', decimal(1, 100))
    .option('--backoff-max-ms <ms>', 'but no longer than this (default 3600000)', wholeNumber(0, 7 * day))
    .option('--dedupe-key <key>', 'while its window lasts, no other with it is sent')
    .option('--dedupe-window-ms <ms>', 'how long that is (default a day)', wholeNumber(1, 30 * day))
}

/** The message that the options make of its data. */
export function messageOf(flags: MessageFlags, dataText: string): NewMessage {
  const { header, backoffBaseMs: baseMs, backoffFactor: factor, backoffMaxMs: maxMs, ...rest } = flags
  const backoff = {
    ...(baseMs !== undefined && { baseMs }),
    ...(factor !== undefined && { factor }),
    ...(maxMs !== undefined && { maxMs }),
  }
  return {
    ...rest,
    ...(header && { headers: header }),
    ...(Object.keys(backoff).length > 0 && { backoff }),
    dataText,
  }
}
