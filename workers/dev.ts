// Everything in one process, as `millrace dev`: the embedded database (or DATABASE_URL), API, delivery.
import { createProcessIo } from '../src/cli/process-io.ts'
import { runCli } from '../src/cli/run.ts'

process.exitCode = await runCli(['dev', ...process.argv.slice(2)], createProcessIo())
