/** Starts the embedded Postgres on the given folder, prints where it is, and stays until it is killed. */
import { startEmbeddedPostgres } from '../../src/embedded/embedded-postgres.ts'
import { silentLog } from '../../src/system-ports.ts'

const { url, attached } = await startEmbeddedPostgres({ dataDir: process.argv[2]!, log: silentLog })
process.stdout.write(`${JSON.stringify({ url, attached })}\n`)
process.stdin.resume()
