// Bundles what people run as processes: the command line, and the two workers that are commands of it.
import { build } from 'esbuild'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/** Relative to the package; their JavaScript lies at the same paths below the build. */
export const processEntries = ['src/cli/main.ts', 'workers/forwarder.ts', 'workers/dev.ts']

/**
 * The one package that goes into the bundle. For each module that it loads, Node 24 keeps a copy of the package.json
 * that the module is under, and drizzle-orm's has 179 KB: its 900 modules cost 300 MB of memory and seconds of garbage
 * collection (Node 20: 82 MB). Inlined, a forwarder takes what it took on Node 20. The other packages stay where npm
 * installs them, so that a fix of theirs needs no new version of this one.
 */
const inlined = 'drizzle-orm'

/**
 * Not minified: in a stack trace each function has its name, and in the file each module its path above it. What is
 * imported only when needed stays a file of its own.
 *
 * @param {string} outDir
 */
export async function bundleProcesses(outDir) {
  const packages = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })
  await build({
    absWorkingDir: root,
    entryPoints: processEntries,
    outbase: root,
    outdir: outDir,
    chunkNames: 'processes/[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    external: packages.filter((name) => name !== inlined),
    legalComments: 'eof',
    logLevel: 'warning',
  })
  chmodSync(join(outDir, 'src/cli/main.js'), 0o755)
  writeFileSync(join(outDir, 'processes', 'NOTICE'), notice())
}

/** The package brings no licence file of its own; its package.json names the licence. */
function notice() {
  const { version, license } = JSON.parse(
    readFileSync(join(root, 'node_modules', inlined, 'package.json'), 'utf8'),
  )
  return `The files in this folder contain parts of ${inlined} ${version} (https://github.com/drizzle-team/drizzle-orm),
under the ${license} license, by its authors; only what is unused was left out.
`
}
