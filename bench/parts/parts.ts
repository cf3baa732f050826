import type { Part } from '../harness/case.ts'
import { bundle } from './bundle.ts'
import { delivery } from './delivery.ts'
import { depthPart } from './depth.ts'
import { fanOutPart } from './fan-out.ts'
import { growth } from './growth.ts'
import { latency } from './latency.ts'
import { memory } from './memory.ts'
import { publish } from './publish.ts'
import { queues } from './queues.ts'
import { read } from './read.ts'

/** All parts, in the order in which they run. */
export const parts: readonly Part[] = [
  publish,
  read,
  delivery,
  latency,
  fanOutPart,
  queues,
  depthPart,
  bundle,
  memory,
  growth,
]
