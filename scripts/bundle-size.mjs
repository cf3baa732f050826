// Fails when the edge bundle is larger than a worker should be: start-up time counts against its first request.
import { gzipSync } from 'node:zlib'
import { bundleEdge } from './bundle-edge.mjs'

const limitKb = 130

/** The package that a file of the bundle comes from, or its folder in src. */
function originOf(path) {
  const inPackage = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)
  return inPackage === null ? path.split('/').slice(0, 2).join('/') : inPackage[1]
}

const { code, inputs } = await bundleEdge('workers/edge.ts', { minify: true })
const kb = gzipSync(code, { level: 9 }).length / 1024
const shares = new Map()
for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
  const origin = originOf(path)
  shares.set(origin, (shares.get(origin) ?? 0) + bytesInOutput)
}
console.log(`The edge bundle: ${kb.toFixed(1)} KB minified and gzipped, of ${limitKb} KB. Minified, in KB:`)
for (const [origin, bytes] of [...shares].sort((a, b) => b[1] - a[1]).slice(0, 8))
  console.log(`${(bytes / 1024).toFixed(1).padStart(8)}  ${origin}`)
if (kb > limitKb) {
  console.error('That is too large: see above what brings the most.')
  process.exitCode = 1
}
