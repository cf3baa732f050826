import { foreignDatabase } from '../db/translate-error.ts'
import type { Ports } from '../ports.ts'
import { createDelivery } from '../webhooks/deliver-event.ts'
import type { ClaimScope } from '../webhooks/engine/claim-webhooks.ts'
import { drain, type DrainReport } from '../webhooks/engine/drain.ts'
import type { EngineSettings } from '../webhooks/engine/engine-settings.ts'
import { createSigner } from '../webhooks/sign.ts'
import { edgeSender } from './edge-sender.ts'
import type { Parts } from './parts.ts'

/** What one invocation may spend on a drain. */
export interface DrainBudget {
  /** Wall time. */
  ms: number
  /** Statements and sends. */
  requests: number
}

/** One bounded drain over `fetch`. Says in the log when it could not do everything, and why. */
export async function runDrain(
  { settings, db, sealer }: Parts,
  ports: Ports,
  scope: ClaimScope,
  budget: DrainBudget,
): Promise<DrainReport> {
  const sender = edgeSender(settings, ports)
  try {
    const report = await drain({
      db,
      ports,
      delivery: createDelivery({ sender, createSigner, sealer, ports }),
      environment: settings.environment,
      keyIds: sealer?.keyIds,
      scope,
      budgetMs: budget.ms,
      maxRequests: budget.requests,
      settings: engineSettings(budget),
    })
    tell(report, settings.environment, ports)
    return report
  } finally {
    await sender.close()
  }
}

/** Cloudflare opens six connections at once for an invocation; one is left for the statements. */
const maxSends = 5

/** With so few requests for each webhook, fewer of them are taken on: reading alone would spend them all. */
const requestsPerLane = 6

function engineSettings({ requests }: DrainBudget): Partial<EngineSettings> {
  return {
    maxSends,
    maxSendsPerHost: maxSends,
    maxConcurrency: maxSends,
    // pages stay in memory, of which a worker has 128 MB
    maxLanes: Math.min(32, Math.max(1, Math.floor(requests / requestsPerLane))),
    // what was taken and not sent is only read again
    maxWindow: 64,
  }
}

/** Says in the log why nothing is done. */
export function tellForeign(theirs: string | null, ours: string | null, { log }: Ports): void {
  log.error({ database: theirs, worker: ours }, foreignDatabase)
}

function tell(report: DrainReport, ours: string | null, ports: Ports): void {
  if (report.foreignEnvironment !== null) {
    tellForeign(report.foreignEnvironment.environment, ours, ports)
  } else if (report.cut) {
    ports.log.info({ webhooks: report.webhooks }, 'the drain had to stop before everything was delivered')
  }
}
