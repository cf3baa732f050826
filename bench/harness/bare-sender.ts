import { Agent, request } from 'undici'
import { createNodeSigner } from '../../src/webhooks/node-sign.ts'
import { generateSecret } from '../../src/webhooks/secrets.ts'
import { together } from './load.ts'

/** A sender with nothing around it: signs and sends. */
export interface BareSender {
  /** Sends one request with the JSON given as data. */
  send(id: string, dataText: string): Promise<void>
  /** Sends so many, `concurrency` at once. */
  sendMany(count: number, concurrency: number, dataText: string): Promise<void>
  close(): Promise<void>
}

/** @param connections at most so many at once */
export async function createBareSender(url: string, connections: number): Promise<BareSender> {
  const agent = new Agent({ connections })
  const signer = createNodeSigner([(await generateSecret('v1')).secret])
  async function send(id: string, dataText: string): Promise<void> {
    const timestamp = Math.floor(Date.now() / 1000)
    const body = `{"type":"bench.event","timestamp":"${new Date().toISOString()}","data":${dataText}}`
    const headers = {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': await signer.sign(id, timestamp, body),
    }
    const answer = await request(url, { dispatcher: agent, method: 'POST', headers, body })
    await answer.body.dump()
  }
  return {
    send,
    async sendMany(count, concurrency, dataText) {
      let next = 0
      await together(concurrency, async () => {
        while (next < count) await send(`evt_bench_${next++}`, dataText)
      })
    },
    close: () => agent.close(),
  }
}
