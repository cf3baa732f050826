import { connect, createServer, type Socket } from 'node:net'

/* Passes connections to an address on to a socket that is a file; a message asks for their remote ports. */
const [host = '', port = '', path = ''] = process.argv.slice(2)
const callers = new Set<Socket>()

const server = createServer((near) => {
  const far = connect(path)
  callers.add(near)
  near
    .on('error', () => far.destroy())
    .on('close', () => {
      callers.delete(near)
      far.destroy()
    })
  far.on('error', () => near.destroy()).on('close', () => near.destroy())
  near.pipe(far).pipe(near)
})
server.listen(Number(port), host, () => process.stdout.write('ready\n'))
process.on('message', () => process.send?.([...callers].map(({ remotePort }) => String(remotePort))))
process.on('disconnect', () => process.exit())
