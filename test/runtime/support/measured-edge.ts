// The worker that is deployed, measured.
import edge from '../../../workers/edge.ts'
import { measure } from './measure.ts'

export default measure(edge)
