import type { PartResult } from '../harness/results.ts'
export async function writeReport(_results: readonly PartResult[]): Promise<void> {}
