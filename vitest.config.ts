import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

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

export default defineConfig({
  resolve: { alias: ownName() },
  // The bus's conformance suite has decorators of the older kind; nothing here has any.
  esbuild: { tsconfigRaw: { compilerOptions: { experimentalDecorators: true } } },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/fixtures/**'],
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
