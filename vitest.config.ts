import { defineConfig } from 'vitest/config'

export default defineConfig({
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
    // Two are what CI has; more would only share out one disk's flushes.
    maxWorkers: 2,
  },
})
