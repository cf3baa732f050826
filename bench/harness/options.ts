import { parseArgs } from 'node:util'

/** How a run was asked for. */
export interface RunOptions {
  /** Names of parts; empty: all. */
  parts: string[]
  rounds: number
  /** A smoke test: one round of the smallest sizes, and nothing is kept. */
  quick: boolean
  /** Also what takes long: growth up to ten million events. */
  full: boolean
  /** Whether results, chart and table are written. */
  keep: boolean
}

/** Fewer are not kept: a median needs company. */
const leastRounds = 5

/** Reads the command line. Exits with a line on what is wrong. */
export function readOptions(args: string[], known: readonly string[]): RunOptions {
  const { values, positionals } = parse(args)
  if (values.help) {
    console.log(`${usage}\nParts: ${known.join(', ')}.`)
    process.exit()
  }
  const unknown = positionals.filter((name) => !known.includes(name))
  if (unknown.length > 0) fail(`There is no part ${unknown.join(', ')}. There are: ${known.join(', ')}.`)
  const rounds = Number(values.rounds ?? (values.quick ? 1 : leastRounds))
  if (!Number.isInteger(rounds) || rounds < 1) fail('--rounds takes a whole number from 1.')
  const { quick, full } = values
  return { parts: positionals, rounds, quick, full, keep: !quick && rounds >= leastRounds }
}

const usage = `Usage: npm run bench -- [part …] [--rounds N] [--full] [--quick]
  --rounds N  rounds of each case, ${leastRounds} by default and at least, for results to be kept
  --full      also with ten million events stored
  --quick     a smoke test: one round, small sizes, nothing is judged or kept`

function parse(args: string[]) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        rounds: { type: 'string' },
        quick: { type: 'boolean', default: false },
        full: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
  } catch (error) {
    return fail(`${(error as Error).message}\n${usage}`)
  }
}

function fail(line: string): never {
  console.error(line)
  process.exit(2)
}
