// A sender in a process of its own, since NODE_EXTRA_CA_CERTS is read only at the start of one: sends each
// of the requests given as JSON, all at once where `together` says so, and prints the results as JSON.
import { createHttp2Sender, preferHttp1 } from '../../../src/webhooks/node-http2.ts'
import { createNodeSender } from '../../../src/webhooks/node-sender.ts'

const { urls, together, timeoutMs } = JSON.parse(process.argv[2] ?? '{}') as {
  urls: string[]
  together: boolean
  timeoutMs: number
}
const policy = { allowInsecure: true }
const sender = preferHttp1(createNodeSender({ policy }), createHttp2Sender({ policy }))
const send = (url: string) => sender.send({ url, headers: { 'webhook-id': 'x' }, body: '{"n":1}', timeoutMs })
const results = []
if (together) results.push(...(await Promise.all(urls.map(send))))
else for (const url of urls) results.push(await send(url))
process.stdout.write(JSON.stringify(results))
await sender.close()
