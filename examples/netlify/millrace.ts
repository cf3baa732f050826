import { createEdge } from '../../src/edge/create-edge.ts'
import { createSystemPorts } from '../../src/system-ports.ts'

export const edge = createEdge(createSystemPorts())
/** Netlify counts no requests; with 10,000 at most, the time is what bounds a drain. */
export const env = { MILLRACE_SUBREQUESTS: '10000', ...process.env }
