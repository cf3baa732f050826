import { CommanderError } from 'commander'
import { exitCodeOf } from '../node/fail.ts'
import { explainError } from './explain-error.ts'
import type { Cli, Io } from './io.ts'
import { createProgram } from './program.ts'
import { createStyle } from './style.ts'

/** After Ctrl-C, as shells count it: 128 and the number of SIGINT. */
const interrupted = 130

/**
 * Runs the command line.
 *
 * @param args without the program's own name
 * @returns the exit code: 0, 1 for a failure, 2 for wrong usage, 78 for a database of another environment, 130
 *   when it was stopped half-way
 */
export async function runCli(args: readonly string[], io: Io): Promise<number> {
  const cli: Cli = { io, exitCode: 0 }
  const program = createProgram(cli)
  try {
    if (args.length === 0) program.outputHelp()
    else await program.parseAsync(args, { from: 'user' })
    return cli.exitCode
  } catch (error) {
    return report(error, cli, program.commands.find((command) => command.name() === args[0])?.name())
  }
}

/** @param command in which it happened; undefined: in none */
function report(error: unknown, { io }: Cli, command: string | undefined): number {
  if (!(error instanceof CommanderError)) {
    complain(io, explainError(error, io))
    return io.signal.aborted ? interrupted : exitCodeOf(error)
  }
  // help and the version come as errors too; so does the help of a command that was called without its own
  if (error.exitCode === 0) return 0
  if (error.code === 'commander.help') return 2
  const help = ['millrace', command, '--help'].filter((word) => word !== undefined).join(' ')
  complain(io, `${oneLine(error.message.replace(/^error: /, ''))} (see \`${help}\`)`)
  return 2
}

function complain(io: Io, message: string): void {
  io.stderr.write(`${createStyle(io.stderr, io.env).red('millrace:')} ${message}\n`)
}

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, ' ').trim()
}
