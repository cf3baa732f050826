// Kept in the syntax of old versions of Node, so that they get as far as the message.
var parts = process.versions.node.split('.').map(Number)
if (parts[0] < 20 || (parts[0] === 20 && parts[1] < 19)) {
  console.error('Millrace needs Node 20.19 or newer; this is Node ' + process.versions.node + '.')
  process.exit(1)
}
