import type { Db } from '../../db/port.ts'
import { MillraceError } from '../../errors/millrace-error.ts'
import { maxPageEvents, readEvents, type EventPage } from '../../streams/read-events.ts'
import type { Allowance } from './allowance.ts'
import { claimWebhooks, type Claim, type ClaimRequest } from './claim-webhooks.ts'
import { flushOutcomes, type Flushed, type LaneFlush } from './flush-outcomes.ts'
import { loadDueDeliveries, loadUnits, type LoadedDelivery } from './load-deliveries.ts'

/** All that the engine asks of the database. Each call is one statement, and is counted before it is made. */
export interface Statements {
  claim(request: ClaimRequest): Promise<Claim>
  readPage(stream: string, after: number): Promise<EventPage>
  loadDue(webhookIds: readonly string[]): Promise<LoadedDelivery[]>
  loadUnits(webhookId: string, units: readonly string[]): Promise<LoadedDelivery[]>
  flush(lanes: readonly LaneFlush[], leaseMs: number): Promise<Flushed>
}

export function createStatements(db: Db, allowance: Allowance): Statements {
  const counted = <T>(statement: () => Promise<T>): Promise<T> =>
    allowance.spend() ? statement() : Promise.reject(spent())
  return {
    claim: (request) => counted(() => claimWebhooks(db, request)),
    readPage: (stream, after) => counted(() => readEvents(db, stream, { after, limit: maxPageEvents })),
    loadDue: (webhookIds) => counted(() => loadDueDeliveries(db, webhookIds)),
    loadUnits: (webhookId, units) => counted(() => loadUnits(db, webhookId, units)),
    flush: (lanes, leaseMs) => counted(() => flushOutcomes(db, lanes, leaseMs)),
  }
}

function spent(): MillraceError {
  return new MillraceError('DATABASE_UNAVAILABLE', 'the requests that this run may make are spent')
}
