import * as v from 'valibot'
import { invalidInput, MillraceError } from '../errors/millrace-error.ts'
import { parseShape } from '../json/shape.ts'
import { assertReadableName } from '../schema/names.ts'
import { assertOffset } from '../streams/read-events.ts'
import { assertTypes } from '../streams/type-filter.ts'
import { validateCustomHeaders } from './custom-headers.ts'
import { checkTargetUrl, type TargetPolicy } from './target-url.ts'

/** As many as a webhook may have attempts. */
const maxAttempts = 50
/** A week: longer waits are better served by a dead letter that someone looks at. */
const maxDelayMs = 7 * 24 * 60 * 60 * 1000

type Headers = Record<string, string>

const types = v.array(v.string())
// v.record would leave out `__proto__` in silence; validateCustomHeaders looks at every name and value
const headers = v.pipe(
  v.custom<Headers>(() => true),
  v.check(
    (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
    'must be a JSON object of names and values',
  ),
)
const delays = v.array(whole(0, maxDelayMs))
const formats = v.picklist(['standard', 'raw', 'cloudevents', 'cloudevents-binary'])

/** What can be changed later. */
const settings = {
  url: v.string(),
  types: v.optional(v.nullable(types)),
  maxAttempts: v.optional(whole(1, maxAttempts)),
  scheduleMs: v.optional(v.nullable(delays)),
  jitterPercent: v.optional(whole(0, 100)),
  timeoutMs: v.optional(whole(1000, 30_000)),
  rateLimit: v.optional(v.nullable(whole(1, 10_000))),
  headers: v.optional(v.nullable(headers)),
}

const creation = v.strictObject({
  ...settings,
  stream: v.string(),
  ordering: v.optional(v.picklist(['stream', 'key', 'none'])),
  from: v.optional(v.union([v.literal('now'), v.literal('start'), v.number()])),
  format: v.optional(formats),
  signature: v.optional(v.picklist(['v1', 'v1a'])),
  secret: v.optional(v.string()),
})

const change = v.strictObject({ ...settings, url: v.optional(v.string()) })

/** What {@link createWebhook} takes. */
export interface WebhookInput {
  /** The stream to deliver; made when it does not exist yet. */
  stream: string
  /** Where to: at most 2048 characters, and what the target guard lets pass. Stored as URL parsers print it. */
  url: string
  /** Event types to deliver, `*` allowed at the end, 1 to 100; null or absent: all. */
  types?: string[] | null
  /** What is delivered one after the other: the whole stream, the events of a key (default), or nothing. */
  ordering?: 'stream' | 'key' | 'none'
  /** Where to begin: with what is published after this call (`now`, the default), with all there is, or after an offset. */
  from?: 'now' | 'start' | number
  /** Default `standard`. */
  format?: 'standard' | 'raw' | 'cloudevents' | 'cloudevents-binary'
  /** `v1` (HMAC-SHA256) or `v1a` (ed25519); absent: what `secret` is for, else `v1`. */
  signature?: 'v1' | 'v1a'
  /** The signing secret: `whsec_` and 24 to 64 bytes in base64, or `whsk_` and 32; absent: one is made. */
  secret?: string
  /** 1 to 50, default 10. */
  maxAttempts?: number
  /**
   * Delays before each attempt in milliseconds: 1 to 50, each at most 7 days, the first one 0, since the first
   * attempt waits for nothing; past the end the last one counts. Null or absent: the default schedule.
   */
  scheduleMs?: number[] | null
  /** Up to this percentage is added to each delay at random: 0 to 100, default 20. */
  jitterPercent?: number
  /** How long an attempt may take, body and all: 1000 to 30,000, default 15,000. */
  timeoutMs?: number
  /** Requests per second: 1 to 10,000; null or absent: unlimited. */
  rateLimit?: number | null
  /** Headers sent with each request; null or absent: none. */
  headers?: Record<string, string> | null
}

/** What {@link updateWebhook} takes: only what is named changes, and null takes the default again. */
export type WebhookChange = Partial<
  Pick<
    WebhookInput,
    'url' | 'types' | 'maxAttempts' | 'scheduleMs' | 'jitterPercent' | 'timeoutMs' | 'rateLimit' | 'headers'
  >
>

/** Changing these would break the order, or the bytes, of what is already on its way. */
const fixed = new Set(['stream', 'ordering', 'from', 'format', 'signature'])

/**
 * Checks what a webhook is to be made of, and returns it as it will be stored.
 *
 * @throws INVALID_INPUT, INVALID_NAME, TARGET_FORBIDDEN; `details.field` names the field
 */
export function parseWebhookInput(value: unknown, policy: TargetPolicy): WebhookInput {
  const input = parseShape(creation, value, 'body') as WebhookInput
  assertReadableName('stream', input.stream)
  if (typeof input.from === 'number') assertOffset('from', input.from)
  return { ...input, ...checkedSettings(input, policy) }
}

/**
 * Checks what of a webhook is to change, and returns it as it will be stored.
 *
 * @throws INVALID_INPUT, TARGET_FORBIDDEN; `details.field` names the field
 */
export function parseWebhookChange(value: unknown, policy: TargetPolicy): WebhookChange {
  for (const name of Object.keys(value as object)) {
    if (name === 'secret') throw invalidInput(name, 'cannot be changed here: rotate it (rotate-secret)')
    if (fixed.has(name)) throw invalidInput(name, 'cannot be changed: make another webhook')
  }
  const input = parseShape(change, value, 'body') as WebhookChange
  return { ...input, ...checkedSettings(input, policy) }
}

/** The settings whose stored form may differ from the given one. */
function checkedSettings(input: WebhookChange, policy: TargetPolicy): { url?: string; headers?: Headers } {
  const { url, types, scheduleMs, headers } = input
  if (types) assertTypeFilter(types)
  if (scheduleMs) assertSchedule(scheduleMs)
  return {
    ...(url === undefined ? {} : { url: checkedUrl(url, policy) }),
    ...(headers ? { headers: validateCustomHeaders(headers) } : {}),
  }
}

function checkedUrl(text: string, policy: TargetPolicy): string {
  const check = checkTargetUrl(text, policy)
  if (check.ok) return check.url.href
  throw new MillraceError('TARGET_FORBIDDEN', `url ${check.reason}`, { details: { field: 'url' } })
}

function assertSchedule(scheduleMs: number[]): void {
  assertCount('scheduleMs', scheduleMs, maxAttempts)
  if (scheduleMs[0] !== 0) {
    throw invalidInput(
      'scheduleMs[0]',
      'must be 0: the first attempt waits for nothing, [1] is the first wait',
    )
  }
}

/** An empty filter is refused: it could be meant as everything, or as nothing. */
function assertTypeFilter(filter: string[]): void {
  assertCount('types', filter, 100)
  assertTypes(filter)
  for (const type of filter) {
    // oxlint-disable-next-line no-control-regex -- control characters are what this refuses
    if (/[\u0000-\u001f\u007f]/.test(type) || !type.isWellFormed()) {
      throw invalidInput('types', 'must hold well-formed Unicode without control characters')
    }
  }
}

function assertCount(field: string, list: readonly unknown[], most: number): void {
  if (list.length === 0) throw invalidInput(field, 'must not be empty; null takes the default')
  if (list.length > most) throw invalidInput(field, `has more than ${most} entries`)
}

function whole(least: number, most: number) {
  const problem = `must be a whole number from ${least} to ${most}`
  return v.pipe(
    v.number(),
    v.check((value) => Number.isSafeInteger(value) && value >= least && value <= most, problem),
  )
}
