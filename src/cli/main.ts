#!/usr/bin/env node
import { createProcessIo } from './process-io.ts'
import { runCli } from './run.ts'

process.exitCode = await runCli(process.argv.slice(2), createProcessIo())
// a pipe that was not read to its end would keep the process
process.stdin.destroy()
