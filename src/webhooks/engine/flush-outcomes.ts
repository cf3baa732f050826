import { arrayLiteral, numbersLiteral } from '../../db/array-literal.ts'
import { fixedStatement } from '../../db/fixed-statement.ts'
import type { Db } from '../../db/port.ts'
import { runQuery } from '../../db/run.ts'

/** What one leased webhook wants written. */
export interface LaneFlush {
  webhookId: string
  token: string
  /** The new low-water mark. */
  offset: number
  /** Give the lease back. */
  release: boolean
  /** Renew it. Not with every flush: an end that stays is found in the index where it was. */
  renew: boolean
  saturated: boolean
  /** Since the last flush an attempt succeeded. */
  succeeded: boolean
  /** The last attempt failed, and none has succeeded since. */
  failed: boolean
  /** Disable the webhook, for this reason. */
  disable: string | null
  /** As the claim had it. */
  fence: number
  rows: DeliveryRow[]
  /** Units whose head is gone: the next blocked delivery of each becomes the head, due at once. */
  promote: string[]
  log: AttemptRow[]
}

/** How a row of `deliveries` shall be. */
export interface DeliveryRow {
  offset: number
  unit: string | null
  state: 'gone' | 'retrying' | 'blocked' | 'dead'
  attempts: number
  delayMs: number
  status: number | null
  error: string | null
  answer: string | null
}

/** A line of the attempt log. */
export interface AttemptRow {
  offset: number
  attempt: number
  outcome: 'delivered' | 'retry' | 'dead' | 'disabled'
  durationMs: number
  status: number | null
  error: string | null
  answer: string | null
}

/** What the database says of a webhook whose lease still held. */
export interface FlushedLane {
  webhookId: string
  state: 'active' | 'paused' | 'disabled'
  /** Milliseconds until its earliest retry is due; null: it has none. */
  dueInMs: number | null
  /** As in the claim, unless what it brought was changed since. */
  fence: number
}

/** What became of a flush. */
export interface Flushed {
  /** The webhooks whose lease still held: theirs is written. */
  held: FlushedLane[]
  /** Webhooks that someone else is changing at this moment: nothing of theirs is written yet, flush it again. */
  busy: string[]
}

/** See drizzle/0014_flush_outcomes.sql. */
const flushStatement = fixedStatement(
  (
    named,
  ) => `select o_news, o_busy, o_lost from ${named('flush_outcomes')}($1::text::text[], $2::text::uuid[],
    $3::text::bigint[], $4::text::integer[], $5::text::bigint[], $6::text::json, $7::text::json, $8::text::json,
    $9::text::json, $10::integer)`,
)

/**
 * Writes the outcomes of many webhooks in one statement: offsets, deliveries in trouble, attempt log,
 * leases; what an operator should know of it goes to the operational stream. Each webhook's part is guarded by its
 * lease token, so that a worker that lost its lease changes nothing (W5): whoever is neither `held` nor `busy` lost
 * it. It waits for no row lock, so that a transaction that sits on one webhook delays no other (W4).
 */
export async function flushOutcomes(db: Db, lanes: readonly LaneFlush[], leaseMs: number): Promise<Flushed> {
  const values = [
    ...laneValues(lanes),
    disableJson(lanes),
    rowJson(lanes),
    promoteJson(lanes),
    logJson(lanes),
    leaseMs,
  ]
  const [row] = await runQuery<FlushRow>(db, flushStatement(db, values))
  if (row === undefined) throw new Error('the flush returned no row')
  const busy = JSON.parse(row.o_busy) as string[]
  const news = new Map((JSON.parse(row.o_news) as FlushedLane[]).map((lane) => [lane.webhookId, lane]))
  const unwritten = new Set([...busy, ...(JSON.parse(row.o_lost) as string[])])
  const held = lanes
    .filter(({ webhookId }) => !unwritten.has(webhookId))
    .map((lane) => news.get(lane.webhookId) ?? asKnown(lane))
  return { held, busy }
}

function asKnown({ webhookId, fence }: LaneFlush): FlushedLane {
  return { webhookId, state: 'active', dueInMs: null, fence }
}

interface FlushRow {
  o_news: string
  o_busy: string
  o_lost: string
}

/** A list for each column; by far the most of the statement's text, and of what the database spends on reading it. */
function laneValues(lanes: readonly LaneFlush[]): string[] {
  return [
    arrayLiteral(lanes.map(({ webhookId }) => webhookId)),
    arrayLiteral(lanes.map(({ token }) => token)),
    numbersLiteral(lanes.map(({ offset }) => offset)),
    numbersLiteral(lanes.map(flagsOf)),
    numbersLiteral(lanes.map(({ fence }) => fence)),
  ]
}

/** As write_webhooks reads them. */
function flagsOf({ release, renew, saturated, succeeded, failed, rows, promote }: LaneFlush): number {
  const flags = [release, renew, saturated, succeeded, failed, rows.length + promote.length > 0]
  return flags.reduce((sum, flag, bit) => sum + (flag ? 1 << bit : 0), 0)
}

function disableJson(lanes: readonly LaneFlush[]): string | null {
  const reasons = lanes.flatMap(({ webhookId, disable }) =>
    disable === null ? [] : [[webhookId, clean(disable)]],
  )
  return reasons.length === 0 ? null : JSON.stringify(Object.fromEntries(reasons))
}

function rowJson(lanes: readonly LaneFlush[]): string | null {
  return jsonOf(lanes, ({ webhookId, rows }) =>
    rows.map(({ delayMs, ...row }) => ({
      id: webhookId,
      delay: Math.round(delayMs),
      ...row,
      ...cleanTexts(row),
    })),
  )
}

function promoteJson(lanes: readonly LaneFlush[]): string | null {
  return jsonOf(lanes, ({ webhookId, promote }) => promote.map((unit) => ({ id: webhookId, unit })))
}

function logJson(lanes: readonly LaneFlush[]): string | null {
  return jsonOf(lanes, ({ webhookId, log }) =>
    log.map((line) => ({ id: webhookId, ...line, ...cleanTexts(line) })),
  )
}

/** Null where there is nothing, as it mostly is: that part of the function is left out then. */
function jsonOf(lanes: readonly LaneFlush[], of: (lane: LaneFlush) => object[]): string | null {
  const items = lanes.flatMap(of)
  return items.length === 0 ? null : JSON.stringify(items)
}

function cleanTexts({ error, answer }: Pick<DeliveryRow, 'error' | 'answer'>) {
  return { error: clean(error), answer: clean(answer) }
}

/** Postgres refuses NUL and half surrogate pairs, and one refusal would hold up the flush of all (W4). */
function clean(text: string | null): string | null {
  return text === null ? null : text.toWellFormed().replaceAll('\0', '')
}
