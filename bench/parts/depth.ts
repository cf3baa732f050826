// P9: claims while a million messages wait, against a thousand; each queue in a database of its own.
import { createMillrace } from '../../src/millrace.ts'
import type { Contestant, Part } from '../harness/case.ts'
import type { Base } from '../harness/lab.ts'
import { payload, together } from '../harness/load.ts'
import { seedMessages, seedNote } from '../harness/seed.ts'

const clients = 10

interface Depth {
  base: Base
  contestant: Contestant
  close(): Promise<void>
}

/** Claims and acks so many, one at a time, and sends as many again, so that as many wait in the next round. */
async function depth(base: Base, name: string, waiting: number, count: number): Promise<Depth> {
  await seedMessages(base, 'bench', waiting)
  const millrace = createMillrace({ db: base.db })
  const queue = millrace.queue<object>('bench')
  return {
    base,
    contestant: {
      name,
      settings: `${waiting.toLocaleString('en')} waiting; ${clients} loops of claim and ack`,
      async measure() {
        let left = count
        const start = performance.now()
        await together(clients, async () => {
          while (left-- > 0) await queue.ack((await queue.claim()).messages)
        })
        const rate = count / ((performance.now() - start) / 1000)
        await queue.sendMany(Array.from({ length: count }, () => ({ data: payload })))
        return { rate }
      },
    },
    async close() {
      await millrace.close()
      await base.close()
    },
  }
}

export const depthPart: Part = {
  name: 'depth',
  async open(lab, { quick }) {
    const count = quick ? 100 : 500
    const deep = await depth(await lab.openBase('deep'), 'Millrace', quick ? 20_000 : 1_000_000, count)
    const shallow = await depth(await lab.openBase('shallow'), '1,000 waiting', 1000, count)
    return {
      cases: [
        {
          id: 'claim-depth',
          title: 'claim and ack while 1,000,000 wait, and while 1,000 do',
          units: { rate: 'messages/s' },
          contestants: [deep.contestant, shallow.contestant],
        },
      ],
      notes: [seedNote],
      async close() {
        await deep.close()
        await shallow.close()
      },
    }
  },
}
