import type { Db } from '../db/port.ts'
import { createApp } from '../http/app.ts'
import type { AppOptions } from '../http/context.ts'
import { docRoutes } from '../http/openapi/doc-routes.ts'
import { workRoutes } from '../http/work-routes.ts'
import type { Ports } from '../ports.ts'
import type { Settings } from '../settings.ts'
import { targetPolicyOf } from '../webhooks/allowed-targets.ts'
import type { Sealer } from '../webhooks/seal.ts'
import { liveParts } from './live-parts.ts'
import { packageVersion } from './package-version.ts'
import { ringAfterChange } from './ring-after-change.ts'
import type { RunningDelivery } from './start-delivery.ts'
import { startHttp, type Address, type RunningHttp } from './start-http.ts'

/** What {@link startApi} takes. */
export interface ApiSetup extends Pick<AppOptions, 'rootKey' | 'afterPublish'> {
  db: Db
  settings: Settings
  ports: Ports
  sealer: Sealer | null
  /** The forwarder of the process, and the rest of its delivery where it has one. */
  running: Pick<RunningDelivery, 'forwarder'> & Partial<RunningDelivery>
  address: Address
}

/** Serves the whole HTTP API, beside what runs in the process. */
export async function startApi(setup: ApiSetup): Promise<RunningHttp> {
  const { db, rootKey, settings, ports, sealer, running, afterPublish } = setup
  const shutdown = new AbortController()
  const app = createApp({
    db,
    rootKey,
    ports,
    sealer,
    targetPolicy: targetPolicyOf(settings),
    shutdown: shutdown.signal,
    workRoutes,
    docRoutes: docRoutes(packageVersion()),
    afterPublish,
    ...liveParts(db, running, { ports, poll: settings.poll }),
  })
  const http = await startHttp(ringAfterChange(app, running.forwarder), setup.address)
  return {
    ...http,
    stop(options) {
      // first: streams and long polls end by themselves, and are not cut
      shutdown.abort()
      return http.stop(options)
    },
  }
}
