import type { Command } from 'commander'
import { connect } from '../connection.ts'
import type { Cli } from '../io.ts'
import { done, type JsonFlag } from './report.ts'

/** `millrace notify <channel> <payload>` */
export function addNotify(program: Command, { io }: Cli): void {
  program
    .command('notify')
    .summary('notify a channel')
    .description('Sends a notification to everyone who listens to a channel now. Nobody stores it.')
    .argument('<channel>')
    .argument('<payload>', 'any text, at most 7999 bytes')
    .option('--json', 'print the result as JSON')
    .action(async (channel: string, payload: string, flags: JsonFlag) => {
      await connect(io).notify(channel, payload, { signal: io.signal })
      done(io, flags, { notified: true }, (style) => `notified ${style.bold(channel)}`)
    })
}
