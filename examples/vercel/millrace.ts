import { createEdge } from 'millrace/edge'
import { createSystemPorts } from 'millrace/ports'

export const edge = createEdge(createSystemPorts(console))
/** Vercel counts no requests; with 10,000 at most, the time is what bounds a drain. */
export const env = { MILLRACE_SUBREQUESTS: '10000', ...process.env }
