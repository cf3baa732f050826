// Builds dist/: JavaScript and declarations, one file a module, as `tsc` emits them. SQL is read from drizzle/.
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, rmSync } from 'node:fs'

rmSync('dist', { recursive: true, force: true })
execFileSync('npx', ['tsc', '-p', 'tsconfig.build.json'], { stdio: 'inherit' })
const bin = 'dist/src/cli/main.js'
if (existsSync(bin)) chmodSync(bin, 0o755)
