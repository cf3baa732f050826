// Builds dist/ (or the folder that is named): JavaScript and declarations, one file a module, as `tsc` emits them; and
// what people run as processes, bundled (see scripts/bundle-processes.mjs). SQL is read from drizzle/.
import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundleProcesses } from './bundle-processes.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const outDir = resolve(root, process.argv[2] ?? 'dist')

rmSync(outDir, { recursive: true, force: true })
execFileSync('npx', ['tsc', '-p', 'tsconfig.build.json', '--outDir', outDir], { cwd: root, stdio: 'inherit' })
await bundleProcesses(outDir)
