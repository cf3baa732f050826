import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The package by its own name, as the examples import it, is its source here: what tsconfig.json says. */
function ownName(): { find: RegExp; replacement: string }[] {
  const text = readFileSync(new URL('tsconfig.json', import.meta.url), 'utf8')
  const { paths } = (JSON.parse(text) as { compilerOptions: { paths: Record<string, [string]> } })
    .compilerOptions
  return Object.entries(paths).map(([name, [file]]) => ({
    find: new RegExp(`^${name}$`),
    replacement: fileURLToPath(new URL(file, import.meta.url)),
  }))
}

/** Those that take longest, so that none of them is left for the end, when the other processes have nothing to do. */
const longest = [
  'embedded/embedded-postgres',
  'node/sleep',
  'streams/many-subscribers',
  'streams/restart',
  'contract/',
  'db/transactions',
  'queues/queues.contract',
  'locks/',
  'runtime/',
  'http/node',
  'node-ts-bus/',
  'wakes/half-open',
  'examples/package',
  'streams/model.property',
  'delivery/forwarders',
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = longest.findIndex((name) => moduleId.includes(`/test/${name}`))
      return at < 0 ? longest.length : at
    }
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}

export default defineConfig({
  resolve: { alias: ownName() },
  // The bus's conformance suite has decorators of the older kind; nothing here has any.
  esbuild: { tsconfigRaw: { compilerOptions: { experimentalDecorators: true } } },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/fixtures/**'],
    sequence: { sequencer: LongestFirst },
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // One second is too short on a machine that is busy with other things.
    expect: { poll: { timeout: 10_000 } },
    // That suite is published as TypeScript, which Node 20 does not run.
    server: { deps: { inline: ['@node-ts/bus-test'] } },
    // Files of one process share what they import: to load it anew for each took a sixth of the time.
    isolate: false,
    // Two cores are what CI has; a third file runs while others wait for time-outs and processes.
    maxWorkers: 3,
  },
})
