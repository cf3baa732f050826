import type { Command } from 'commander'
import type { Scope } from '../../client/keys.ts'
import { connect } from '../connection.ts'
import type { Cli } from '../io.ts'
import { list } from '../options.ts'
import { printable } from '../printable.ts'
import { done, plain, printAll, type JsonFlag } from './report.ts'

const examples = `
Scopes: publish (put events and messages in, take locks), read (take them out, claim and
settle, follow) and manage (webhooks, keys, schedules, trim, redrive). None includes
another.

Examples:
  $ millrace keys create shop --scopes publish,read
  $ millrace keys create tenant-7 --scopes publish,read --stream-prefix tenant-7.
  $ millrace keys revoke key_…`

/** `millrace keys create | list | revoke` */
export function addKeys(program: Command, cli: Cli): void {
  const { io } = cli
  const keys = program
    .command('keys')
    .summary('create, list and revoke API keys')
    .description('Creates, lists and revokes API keys at the server.')
    .helpCommand(false)
    .addHelpText('after', examples)
  keys
    .command('create')
    .description('Create a key. It is printed this once.')
    .argument('<name>', 'what it is for')
    .requiredOption('--scopes <scopes>', 'publish, read, manage, with commas between', list)
    .option('--stream-prefix <prefix>', 'only streams whose name begins like this, and nothing else')
    .option('--json', 'print it as JSON')
    .action(async (name: string, flags: JsonFlag & { scopes: string[]; streamPrefix?: string }) => {
      const { scopes, streamPrefix = null } = flags
      const input = { name, scopes: scopes as Scope[], streamPrefix }
      const key = await connect(io).keys.create(input, { signal: io.signal })
      done(
        io,
        flags,
        key,
        (style) =>
          `created ${style.bold(key.id)} (${key.scopes.join(', ')})\n  key  ${key.key} ${style.dim('(shown this once)')}`,
      )
    })
  keys
    .command('list')
    .description('List the keys, without what is secret.')
    .option('--json', 'print each as a line of JSON')
    .action((flags: JsonFlag) =>
      printAll(io, flags, {
        async page(cursor) {
          const { keys: items, next } = await connect(io).keys.list({ cursor, signal: io.signal })
          return { items, next }
        },
        head: ['id', 'name', 'scopes', 'streams', 'created'],
        row: ({ id, name, scopes, streamPrefix, createdAt }) => [
          id,
          printable(name),
          scopes.join(','),
          streamPrefix === null ? plain(null) : `${printable(streamPrefix)}*`,
          createdAt,
        ],
        none: 'There are no API keys. `millrace keys create --help` tells how to make one.',
      }),
    )
  keys
    .command('revoke')
    .description('Revoke a key: within 10 seconds it opens nothing anywhere.')
    .argument('<id>', 'key_…')
    .option('--json', 'print the result as JSON')
    .action(async (id: string, flags: JsonFlag) => {
      await connect(io).keys.revoke(id, { signal: io.signal })
      done(io, flags, { id, revoked: true }, () => `revoked ${id}`)
    })
}
