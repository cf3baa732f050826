import { vi } from 'vitest'

/** Polls until the check holds; bounded, but generous, since a busy machine is no failure. */
export function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: 20_000, interval: 20 })
}
