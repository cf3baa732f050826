// The entry of `millrace/node`: what a server of one's own is made of, as examples/node puts it together.
export { createJsonLog, createTerminalLog } from './log.ts'
export { migrateDatabase, openDatabase } from './open-database.ts'
export { openSealer } from './open-sealer.ts'
export { startDelivery } from './start-delivery.ts'
export { startHttp } from './start-http.ts'
export { startSchedules } from './start-schedules.ts'
export { untilStopped } from './until-stopped.ts'
export { targetPolicyOf } from '../webhooks/allowed-targets.ts'
