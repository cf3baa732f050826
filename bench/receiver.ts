// A receiver in a process of its own: answers 200 at once and tells its parent when what it waits for has arrived.
import { createServer } from 'node:http'
import { monotonicMs } from './harness/clock.ts'

let received = 0
let wanted = Infinity
let times: [number, number][] | null = null
const tell = (message: object): void => void process.send?.(message)

/** One more request: `n` is what its body says. */
function count(body: string): void {
  received++
  times?.push([Number(/"n":(\d+)/.exec(body)?.[1]), monotonicMs()])
  if (received < wanted) return
  wanted = Infinity
  tell(times === null ? { done: received } : { times })
}

const server = createServer((request, response) => {
  let body = ''
  if (times === null) request.resume()
  else request.on('data', (bytes: Buffer) => (body += bytes.toString()))
  request.on('end', () => {
    response.end()
    count(body)
  })
})

process.on('message', (order: { expect: number; record: boolean }) => {
  received = 0
  wanted = order.expect
  times = order.record ? [] : null
  tell({ ready: true })
})
process.on('disconnect', () => process.exit())
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => tell({ port: (server.address() as { port: number }).port }))
