/** Milliseconds of CLOCK_MONOTONIC, which is the same in every process of the machine. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
