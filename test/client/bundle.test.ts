import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { describe, expect, it } from 'vitest'

describe('the client as a bundle', () => {
  it('needs neither Node nor a database, and stays small', async () => {
    const entry = fileURLToPath(new URL('../../src/client/client.ts', import.meta.url))
    // for a browser: an import of `node:` or of a package could not be resolved
    const { outputFiles, metafile } = await build({
      entryPoints: [entry],
      bundle: true,
      minify: true,
      write: false,
      metafile: true,
      format: 'esm',
      platform: 'browser',
    })
    const rooms = Object.keys(metafile.inputs).map((path) => /src\/(\w+)\//.exec(path)?.[1])
    expect([...new Set(rooms)].toSorted()).toEqual(['client', 'errors', 'json'])
    expect(outputFiles[0]?.contents.length).toBeLessThan(20_000)
  })
})
