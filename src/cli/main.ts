#!/usr/bin/env node
import { createProcessIo } from './process-io.ts'
import { runCli } from './run.ts'

process.exitCode = await runCli(process.argv.slice(2), createProcessIo())
