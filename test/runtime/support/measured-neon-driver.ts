// A worker over Neon's own driver, measured.
import { createNeonHttpDb } from '../../../src/db/drivers/neon-http.ts'
import { createEdge } from '../../../src/edge/create-edge.ts'
import { createSystemPorts } from '../../../src/system-ports.ts'
import { measure } from './measure.ts'

const edge = createEdge(createSystemPorts(), { openDb: createNeonHttpDb })

export default measure({
  fetch: edge.fetch,
  scheduled: async (_event, env) => void (await edge.drainAll(env, 50_000)),
  queue: async ({ messages }, env) =>
    void (await edge.drainWakes(
      env,
      messages.map(({ body }) => body),
      50_000,
    )),
})
