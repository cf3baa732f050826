// P11: what an edge platform has to load before the first request.
import { gzipSync } from 'node:zlib'
import { bundleEdge } from '../../scripts/bundle-edge.mjs'
import type { Part } from '../harness/case.ts'

export const bundle: Part = {
  name: 'bundle',
  open: async () => ({
    cases: [
      {
        id: 'bundle',
        title: 'the edge bundle, minified and gzipped, as `npm run bundle:check` measures it',
        units: { size: 'KB' },
        once: true,
        contestants: [
          {
            name: 'Millrace',
            async measure() {
              const { code } = await bundleEdge('workers/edge.ts', { minify: true })
              return { size: gzipSync(code, { level: 9 }).length / 1024 }
            },
          },
        ],
      },
    ],
    close: async () => {},
  }),
}
