import type { Part } from '../harness/case.ts'
import { queues } from './queues.ts'

/** All parts, in the order in which they run. */
export const parts: readonly Part[] = [queues]
