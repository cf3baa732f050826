import type { Db } from '../db/port.ts'
import type { Ports } from '../ports.ts'
import type { Settings } from '../settings.ts'
import type { Forwarder } from '../wakes/forwarder.ts'
import { targetPolicyOf } from '../webhooks/allowed-targets.ts'
import { createDelivery, type AttemptReport } from '../webhooks/deliver-event.ts'
import { Engine, type ClaimReport, type Delivery } from '../webhooks/engine/engine.ts'
import { defaultEngineSettings, type EngineSettings } from '../webhooks/engine/engine-settings.ts'
import { serveDeliveries, type WorkFeed } from '../webhooks/engine/serve.ts'
import { createHttp2Sender, preferHttp1 } from '../webhooks/node-http2.ts'
import { createNodeSender } from '../webhooks/node-sender.ts'
import { createNodeSigner } from '../webhooks/node-sign.ts'
import type { Sealer } from '../webhooks/seal.ts'
import { forwarderOf } from './forwarder-of.ts'
import { startHousekeeping } from './housekeeping.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import { createPace } from './pace.ts'

/** What {@link startDelivery} takes. */
export interface DeliverySetup {
  db: Db
  settings: Settings
  sealer: Sealer | null
  ports: Ports
  engine?: Partial<EngineSettings>
  onAttempt?: (report: AttemptReport) => void
  onClaim?: (report: ClaimReport) => void
}

/** The forwarder and the delivery engine of this process, running. */
export interface RunningDelivery {
  forwarder: Forwarder
  metrics: Metrics
  /** Makes attempts outside the engine too, for test events. */
  delivery: (installationId: string) => Delivery
  /** Stops claiming, finishes or breaks off what is being sent, writes what became of it, ends the LISTEN. */
  stop(options: { withinMs: number }): Promise<void>
}

/** Starts to listen and to deliver. */
export function startDelivery(setup: DeliverySetup): RunningDelivery {
  const { db, settings, ports } = setup
  const forwarder = forwarderOf(setup)
  const policy = targetPolicyOf(settings)
  const sender = preferHttp1(createNodeSender({ policy }), createHttp2Sender({ policy }))
  const metrics = createMetrics({
    db,
    clock: ports.clock,
    mode: () => forwarder.mode,
    sending: () => engine.sending,
  })
  const onAttempt = (report: AttemptReport): void => {
    metrics.onAttempt(report)
    setup.onAttempt?.(report)
  }
  const { sealer } = setup
  const delivery = createDelivery({ sender, createSigner: createNodeSigner, sealer, ports, onAttempt })
  const engine: Engine = new Engine({
    db,
    ports,
    delivery,
    settings: {
      ...defaultEngineSettings,
      leaseMs: settings.leaseMs,
      ...setup.engine,
    },
    environment: settings.environment,
    keyIds: sealer?.keyIds,
  })
  const stop = new AbortController()
  const feed = createFeed(setup, { forwarder, engine, signal: stop.signal })
  const serving = serveDeliveries({ engine, feed, ports, onClaim: setup.onClaim })
  const housekeeping = startHousekeeping({ db, ports, forwarder })
  forwarder.start()
  return {
    forwarder,
    metrics,
    delivery,
    async stop(options) {
      stop.abort()
      await Promise.all([serving, housekeeping.stop()])
      await engine.stop(options)
      await Promise.all([sender.close(), forwarder.close()])
    },
  }
}

/** What the serving loop waits for. While webhooks are worked on, the process is at work too. */
function createFeed(
  { ports, settings }: DeliverySetup,
  { forwarder, engine, signal }: { forwarder: Forwarder; engine: Engine; signal: AbortSignal },
): WorkFeed {
  const lanes = forwarder.agenda.join()
  const pace = createPace({ forwarder, ports, poll: settings.poll, signal })
  return {
    ...pace,
    onWake: (callback) => forwarder.onWake(callback),
    wait(dueAt) {
      // the end of each lane pokes, so that this is asked again
      if (engine.active > 0) lanes.busy()
      else lanes.rest(Infinity)
      return pace.wait(dueAt)
    },
  }
}
