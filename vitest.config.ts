import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/fixtures/**'],
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // One second is too short on a machine that is busy with other things.
    expect: { poll: { timeout: 10_000 } },
    // Two are what CI has; more would only share out one disk's flushes.
    maxWorkers: 2,
  },
})
