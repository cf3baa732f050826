// A receiver in a process of its own: answers 200 at once and tells its parent when what arrived.
import { createServer } from 'node:http'

let received = 0
let wanted = Infinity
const tell = (message: object): void => void process.send?.(message)

const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => {
    response.end()
    received++
    // CLOCK_MONOTONIC is the same in every process of the machine
    if (request.headers['x-bench-stamp'] !== undefined || wanted === 1)
      tell({ at: String(process.hrtime.bigint()) })
    if (received >= wanted) {
      wanted = Infinity
      tell({ done: received })
    }
  })
})

process.on('message', (message: { expect: number }) => {
  received = 0
  wanted = message.expect
  tell({ ready: true })
})
server.listen(0, '127.0.0.1', () => tell({ port: (server.address() as { port: number }).port }))
