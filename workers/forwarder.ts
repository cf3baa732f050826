// The worker for a VM, as `millrace forward`: one LISTEN connection, the delivery of webhooks, schedules.
import { createProcessIo } from '../src/cli/process-io.ts'
import { runCli } from '../src/cli/run.ts'

process.exitCode = await runCli(['forward'], createProcessIo())
