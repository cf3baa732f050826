import { sql, type SQL } from 'drizzle-orm'
import { bigintArray, textArray } from '../db/array-literal.ts'
import { toNumber } from '../db/decode.ts'
import { executorFor, type Db, type Executor, type TxOption } from '../db/port.ts'
import { qualified, runQuery } from '../db/run.ts'
import { MillraceError } from '../errors/millrace-error.ts'
import type { Sealer } from './seal.ts'
import { signingSecret } from './signing-secret.ts'
import { sealSecret } from './stored-secret.ts'
import type { TargetPolicy } from './target-url.ts'
import { createWebhookId } from './webhook-id.ts'
import { parseWebhookInput, type WebhookInput } from './webhook-input.ts'
import { headsCte, toWebhookView, viewSelect, type WebhookView } from './webhook-view.ts'

/** Losing to a concurrent creation of the same stream happens once: then the stream is there. */
const maxTries = 3

/** What webhooks are made and changed under. */
export interface WebhookRules {
  /** Null: secrets are stored in the clear. */
  sealer: Sealer | null
  policy: TargetPolicy
}

/** A new webhook, and the only time that its secret is shown. */
export interface CreatedWebhook extends WebhookView {
  /** `whsec_…` for v1, `whsk_…` for v1a. */
  secret: string
  /** For v1a: `whpk_…`, what receivers verify with. */
  publicKey?: string
}

/**
 * Creates a webhook, and its stream if there is none of the name. With `from: 'now'` it delivers
 * everything that is published, or whose transaction commits, after this call returns; of what was being
 * published meanwhile, some may come too. One statement, which also wakes the delivery.
 *
 * @throws INVALID_INPUT, INVALID_NAME, TARGET_FORBIDDEN, OFFSET_AHEAD
 */
export async function createWebhook(
  db: Db,
  input: WebhookInput,
  rules: WebhookRules,
  options: TxOption = {},
): Promise<CreatedWebhook> {
  const checked = parseWebhookInput(input, rules.policy)
  const { version, secret, publicKey } = await signingSecret(checked)
  const id = createWebhookId()
  const made = { id, signature: version, sealed: await sealSecret(rules.sealer, secret, id) }
  const on = executorFor(db, options)
  for (let attempt = 1; attempt <= maxTries; attempt++) {
    const [row] = await runQuery<CreateRow>(on, createStatement(on, checked, made))
    if (row === undefined) throw new Error('the creation returned no row')
    if (!row.legal) throw offsetAhead(row.last)
    if (row.view !== null) {
      return { ...toWebhookView({ view: row.view }), secret, ...(publicKey === null ? {} : { publicKey }) }
    }
  }
  throw new MillraceError('DATABASE_BUSY', 'the stream was being created by others')
}

/** What is made up for a new webhook. */
interface Made {
  id: string
  signature: 'v1' | 'v1a'
  /** The secret as it is stored. */
  sealed: string
}

interface CreateRow {
  last: string
  legal: boolean
  view: string | null
}

function offsetAhead(last: string): MillraceError {
  return new MillraceError('OFFSET_AHEAD', `from lies beyond ${last}, the last offset given out`, {
    details: { field: 'from', last: toNumber(last) },
  })
}

/**
 * `origin` is empty when another transaction has just created the stream, behind this statement's
 * snapshot. The horizon is what makes `now` safe: above it lies all that is not decided yet, also what
 * drew its offset before this and commits after it. With an offset that is refused, no stream is made.
 */
function createStatement(on: Executor, input: WebhookInput, made: Made): SQL {
  const { streams, webhookSecrets } = on.tables
  const least = typeof input.from === 'number' ? input.from : 0
  return sql`
    with bounds as materialized (
      select b.last, ${least}::bigint <= b.last as legal
      from (select ${qualified(on, 'last_offset')}() as last) b),
    found as (select s.id from ${streams} s where s.name = ${input.stream}::text),
    founded as (
      insert into ${streams} (name) select ${input.stream}::text from bounds b
      where b.legal and not exists (select from found)
      on conflict (name) do nothing returning id),
    origin as materialized (
      select t.id as stream_id, ${startOffset(input.from)} as "offset"
      from bounds b, (select id from found union all select id from founded) t
      cross join lateral ${qualified(on, 'horizon')}(t.id) h
      where b.legal),
    inserted as (${insertWebhook(on, input, made)}),
    sealed as (
      insert into ${webhookSecrets} (id, webhook_id, sealed)
      select ${crypto.randomUUID()}::text, i.id, ${made.sealed}::text from inserted i),
    page as (select i.*, ${input.stream}::text as stream_name from inserted i),
    ${headsCte(on)}
    select b.last::text, b.legal, (${viewSelect(on)}) as view,
      (select ${qualified(on, 'wake_webhook')}(i.id) from inserted i)
    from bounds b`
}

function startOffset(from: WebhookInput['from']): SQL {
  if (from === undefined || from === 'now') return sql`h.o_horizon`
  return sql`${from === 'start' ? 0 : from}::bigint`
}

function insertWebhook(on: Executor, input: WebhookInput, made: Made): SQL {
  const headers = input.headers ? JSON.stringify(input.headers) : null
  return sql`
    insert into ${on.tables.webhooks}
      (id, stream_id, url, types, ordering, format, signature, state, max_attempts, schedule_ms,
       jitter_percent, timeout_ms, rate_limit, headers, "offset")
    select ${made.id}::text, o.stream_id, ${input.url}::text, ${textArray(input.types ?? null)},
      ${input.ordering ?? 'key'}::text, ${input.format ?? 'standard'}::text, ${made.signature}::text,
      'active', ${input.maxAttempts ?? 10}::integer,
      ${input.scheduleMs ? bigintArray(input.scheduleMs) : sql`null::bigint[]`},
      ${input.jitterPercent ?? 20}::integer, ${input.timeoutMs ?? 15_000}::integer,
      ${input.rateLimit ?? null}::integer, ${headers}::text::json, o."offset"
    from origin o
    returning *`
}
