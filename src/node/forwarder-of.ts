import type { Db } from '../db/port.ts'
import type { Ports } from '../ports.ts'
import type { Settings } from '../settings.ts'
import { createForwarder, type Forwarder } from '../wakes/forwarder.ts'

/** The forwarder of a process, as its settings want it; not yet started. */
export function forwarderOf({
  db,
  settings,
  ports,
}: {
  db: Db
  settings: Settings
  ports: Ports
}): Forwarder {
  return createForwarder({
    connect: (signal) => db.connectDirect({ signal }),
    schema: settings.schema,
    ports,
    listen: settings.listen && db.capabilities.listen,
    sleep: settings.sleep ?? undefined,
  })
}
