import type { Command } from 'commander'
import { connect } from '../connection.ts'
import type { Cli } from '../io.ts'
import { wholeNumber } from '../options.ts'
import { done, printFacts, type JsonFlag } from './report.ts'

const ttl = wholeNumber(100, 86_400_000)

const examples = `
Examples:
  $ millrace locks acquire nightly --ttl-ms 60000 --json
  $ millrace locks renew nightly <token> --ttl-ms 60000
  $ millrace locks release nightly <token>`

/** `millrace locks acquire | renew | release | show` */
export function addLocks(program: Command, { io }: Cli): void {
  const locks = program
    .command('locks')
    .summary('take, renew, release and look at locks')
    .description('Takes, renews, releases and looks at locks.')
    .helpCommand(false)
    .addHelpText('after', examples)
  locks
    .command('acquire')
    .description('Take a lock. The token proves that it is yours; the fence grows with each holder.')
    .argument('<name>')
    .requiredOption('--ttl-ms <ms>', 'how long it is held unless renewed', ttl)
    .option('--wait-ms <ms>', 'how long to wait for it (default: not at all)', wholeNumber(0, 30_000))
    .option('--json', 'print it as JSON')
    .action(async (name: string, { json, ...wanted }: JsonFlag & { ttlMs: number; waitMs?: number }) => {
      const lock = await connect(io)
        .lock(name)
        .acquire({ ...wanted, signal: io.signal })
      printFacts(io, { ...(json && { json }) }, lock)
    })
  locks
    .command('renew')
    .description('Hold a lock for longer.')
    .argument('<name>')
    .argument('<token>')
    .requiredOption('--ttl-ms <ms>', 'from now on', ttl)
    .option('--json', 'print the result as JSON')
    .action(async (name: string, token: string, flags: JsonFlag & { ttlMs: number }) => {
      const until = await connect(io).lock(name).renew(token, { ttlMs: flags.ttlMs, signal: io.signal })
      done(io, flags, { until }, () => `${name} is yours until ${until}`)
    })
  locks
    .command('release')
    .description('Give a lock back.')
    .argument('<name>')
    .argument('<token>')
    .option('--json', 'print the result as JSON')
    .action(async (name: string, token: string, flags: JsonFlag) => {
      await connect(io).lock(name).release(token, { signal: io.signal })
      done(io, flags, { released: true }, () => `released ${name}`)
    })
  locks
    .command('show')
    .description('Show whether a lock is held, and until when.')
    .argument('<name>')
    .option('--json', 'print it as JSON')
    .action(async (name: string, flags: JsonFlag) =>
      printFacts(io, flags, await connect(io).lock(name).state({ signal: io.signal })),
    )
}
