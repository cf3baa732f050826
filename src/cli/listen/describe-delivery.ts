import { isMillraceError } from '../../errors/millrace-error.ts'
import { verifyWebhook } from '../../webhooks/verify.ts'
import { indentJson, jsonLine, printable, timeOfDay } from '../printable.ts'
import type { Style } from '../style.ts'
import type { Received } from './receiver.ts'

/** What is known of a delivery. */
export interface Delivery extends Received {
  at: Date
  id: string | null
  type: string | null
  /** Null: there is no secret to verify with. */
  verified: boolean | null
  /** Why it could not be verified. */
  reason: string | null
  text: string
  isJson: boolean
}

/** Verifies a request and reads what it says of itself. */
export async function toDelivery(received: Received, secret: string | null, at: Date): Promise<Delivery> {
  const text = new TextDecoder().decode(received.body)
  const parsed = parse(text)
  return {
    ...received,
    at,
    id: header(received, 'webhook-id'),
    type: typeOf(received, parsed),
    ...(await verdict(received, secret, at)),
    text,
    isJson: parsed !== undefined,
  }
}

async function verdict(
  { headers, body }: Received,
  secret: string | null,
  now: Date,
): Promise<Pick<Delivery, 'verified' | 'reason'>> {
  if (secret === null) return { verified: null, reason: null }
  try {
    await verifyWebhook({ secret, headers, body, now })
    return { verified: true, reason: null }
  } catch (error) {
    if (!isMillraceError(error) || error.code !== 'WEBHOOK_INVALID') throw error
    return { verified: false, reason: error.message }
  }
}

/** The type stands in the body of the default format and of CloudEvents, and in a header of binary ones. */
function typeOf(received: Received, body: unknown): string | null {
  const inBody = typeof body === 'object' && body !== null && 'type' in body ? body.type : undefined
  return typeof inBody === 'string' ? inBody : header(received, 'ce-type')
}

function header({ headers }: Received, name: string): string | null {
  const value = headers[name]
  return typeof value === 'string' ? value : null
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A delivery for a person: a line about it, then its body. */
export function deliveryText(delivery: Delivery, style: Style): string {
  const head = [
    style.dim(timeOfDay(delivery.at)),
    mark(delivery, style),
    style.cyan(delivery.type === null ? '(no type)' : printable(delivery.type)),
    style.dim(delivery.id === null ? '(no webhook-id)' : printable(delivery.id)),
    answered(delivery.status, style),
  ]
  const body = delivery.isJson ? indentJson(delivery.text.trim()) : delivery.text
  const lines = body.split('\n').map((line) => `    ${printable(line)}`)
  return `${head.join('  ')}\n${lines.join('\n')}\n`
}

function mark({ verified, reason }: Delivery, style: Style): string {
  if (verified === null) return style.yellow('? unverified')
  return verified ? style.green('✓ verified') : style.red(`✗ not verified: ${reason}`)
}

function answered(status: number, style: Style): string {
  return status < 300 ? style.dim(`→ ${status}`) : style.yellow(`→ ${status}`)
}

/** A delivery for a program: one line of JSON, the body as it came. */
export function deliveryJson(delivery: Delivery): string {
  const { at, id, type, verified, reason, status, headers, text, isJson } = delivery
  const head = JSON.stringify({ at, id, type, verified, reason, status, headers })
  return `${head.slice(0, -1)},"body":${isJson ? jsonLine(text.trim()) : JSON.stringify(text)}}\n`
}
