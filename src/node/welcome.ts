/** What {@link welcome} shows. */
export interface WelcomeFacts {
  port: number
  rootKey: string
  database: string
}

/** From the sources the command is a script of the package; as installed, it is the package's own. */
const command = import.meta.url.endsWith('.ts') ? 'npm run -s millrace --' : 'npx millrace'

/** What a development server prints once it runs: where it is, and three commands to try it with. */
export function welcome({ port, rootKey, database }: WelcomeFacts): string[] {
  const url = `http://localhost:${port}`
  const curl = `curl -s ${url}`
  const headers = `-H 'authorization: Bearer ${rootKey}' -H 'content-type: application/json'`
  return [
    '',
    'Millrace is running.',
    '',
    `  address   ${url}`,
    `  key       ${rootKey}`,
    `  database  ${database}`,
    '',
    'See it deliver: paste these into another terminal, in this folder, one after the other.',
    '',
    '  1. a receiver (once it says "Listening", leave it running and take a third terminal for the rest)',
    `     ${command} listen --port 9000`,
    '  2. a webhook',
    `     ${curl}/v1/webhooks ${headers} -d '{"stream":"orders","url":"http://localhost:9000/","scheduleMs":[0,2000]}'`,
    '  3. an event',
    `     ${curl}/v1/streams/orders/events ${headers} -d '{"type":"order.created","key":"order-1","data":{"total":42}}'`,
    '',
    'Each delivery shows up below. Ctrl-C stops everything; the data stays.',
    '',
  ]
}
