// Bundles the edge worker as `wrangler deploy` does, for the size check and for the tests in workerd.
import { build } from 'esbuild'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/**
 * @param {string} entry the worker's entry file, relative to the package
 * @param {{ minify?: boolean }} options
 */
export async function bundleEdge(entry, { minify = false } = {}) {
  const { outputFiles, metafile } = await build({
    entryPoints: [entry],
    absWorkingDir: root,
    bundle: true,
    format: 'esm',
    target: 'es2022',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    // what wrangler passes; the package's exports decide by them what a worker gets
    conditions: ['workerd', 'worker', 'browser'],
    external: ['node:*', 'cloudflare:*'],
    loader: { '.json': 'json' },
    define: { 'process.env.NODE_ENV': '"production"' },
    write: false,
    minify,
    metafile: true,
    logLevel: 'error',
  })
  return { code: outputFiles[0].text, inputs: Object.values(metafile.outputs)[0].inputs }
}
