import type { Ports } from '../ports.ts'
import type { StoredEvent } from '../streams/event.ts'
import type { Cancel } from './cancel.ts'
import type { ClaimedWebhook } from './engine/claim-webhooks.ts'
import type { Delivery } from './engine/engine.ts'
import { formatEvent, type FormattedEvent } from './format.ts'
import { messageIds } from './message-id.ts'
import { decideOutcome, type Outcome } from './outcome.ts'
import type { Sealer } from './seal.ts'
import type { Sender, SendFailure, SendRequest, SendResult } from './sender.ts'
import type { CreateSigner, Signer } from './sign.ts'
import { openSecret } from './stored-secret.ts'

/** What {@link createDelivery} takes. */
export interface DeliveryOptions {
  sender: Sender
  createSigner: CreateSigner
  /** Opens the secrets; null where no master key is set and they lie in the clear. */
  sealer: Sealer | null
  ports: Pick<Ports, 'clock' | 'random'>
  /** Told of every attempt once it is judged, for logs and metrics. */
  onAttempt?: (report: AttemptReport) => void
}

/** One attempt, and what became of it. */
export interface AttemptReport {
  webhook: ClaimedWebhook
  event: StoredEvent
  /** From 1. */
  attempt: number
  result: SendResult
  outcome: Outcome
}

/** Signers of webhooks that were just worked on; keys are imported once, not for every event. */
const keptSigners = 1_000

/**
 * How an event becomes an attempt: formatted and signed afresh (the id and the body are the same bytes
 * every time, W2), sent, and judged by the webhook's own schedule.
 */
export function createDelivery(options: DeliveryOptions): (installationId: string) => Delivery {
  const { sender, ports } = options
  const signerOf = createSignerCache(options)
  const format = createFormat()
  /** Those of webhooks that are being worked on. */
  const ready = new WeakMap<ClaimedWebhook, Signer>()

  /** On Node signing takes no promise, and then none is made: thousands a second are felt. */
  function signAndSend(signer: Signer, webhook: ClaimedWebhook, message: Message): Promise<SendResult> {
    const made = signer.sign(message.id, message.timestamp, message.formatted.body)
    if (typeof made === 'string') return sender.send(toRequest(webhook, message, made))
    return made.then((signature) => sender.send(toRequest(webhook, message, signature)))
  }

  async function openAndSend(webhook: ClaimedWebhook, message: Message): Promise<SendResult> {
    const signer = await signerOf(webhook)
    if ('kind' in signer) return signer
    ready.set(webhook, signer)
    return signAndSend(signer, webhook, message)
  }

  return (installationId) => {
    const idOf = messageIds(installationId)
    return {
      attempt(webhook, event, cancel) {
        try {
          const id = idOf(event.offset)
          const timestamp = Math.floor(ports.clock.now() / 1000)
          const message = { id, timestamp, formatted: format(webhook, event, id), cancel }
          const signer = ready.get(webhook)
          return signer === undefined ? openAndSend(webhook, message) : signAndSend(signer, webhook, message)
        } catch (error) {
          return Promise.reject(error)
        }
      },
      judge(webhook, event, attempt, result) {
        const outcome = decideOutcome({
          result,
          attempt,
          maxAttempts: webhook.maxAttempts,
          scheduleMs: webhook.scheduleMs ?? undefined,
          jitterPercent: webhook.jitterPercent,
          random: ports.random,
          now: () => new Date(ports.clock.now()),
        })
        options.onAttempt?.({ webhook, event, attempt, result, outcome })
        return outcome
      },
    }
  }
}

/** What is to be sent, as it is before it is signed. */
interface Message {
  id: string
  /** Seconds. */
  timestamp: number
  formatted: FormattedEvent
  cancel: Cancel
}

function toRequest(webhook: ClaimedWebhook, message: Message, signature: string): SendRequest {
  const { url, timeoutMs } = webhook
  const { id, timestamp, formatted, cancel } = message
  const headers = {
    ...webhook.headers,
    ...formatted.headers,
    'content-type': formatted.contentType,
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signature,
  }
  return { url, headers, body: formatted.body, timeoutMs, cancel }
}

function createFormat() {
  const isoOf = createIsoText()
  return (webhook: ClaimedWebhook, event: StoredEvent, id: string): FormattedEvent =>
    formatEvent(webhook.format, {
      id,
      type: event.type,
      key: event.key,
      dataText: event.dataText,
      publishedAt: isoOf(event.publishedAt),
      streamName: webhook.stream,
    })
}

/** Events that were published together have one time, and each goes to many webhooks: it is spelt once for them. */
function createIsoText(): (time: Date) => string {
  let lastMs = NaN
  let lastText = ''
  return (time) => {
    const ms = time.getTime()
    if (ms !== lastMs) [lastMs, lastText] = [ms, time.toISOString()]
    return lastText
  }
}

/** Returns the signer of a webhook, or why there is none. */
function createSignerCache({ createSigner, sealer }: DeliveryOptions) {
  const signers = new Map<string, Promise<Signer | SendFailure>>()

  async function make({ id, secrets }: ClaimedWebhook, key: string): Promise<Signer | SendFailure> {
    try {
      return await createSigner(
        await Promise.all(secrets.map(({ sealed }) => openSecret(sealer, sealed, id))),
      )
    } catch {
      // somebody may seal it anew, under a key that is known here
      signers.delete(key)
      const message =
        'the signing secret cannot be opened: is MILLRACE_ENCRYPTION_KEY the one it was sealed with?'
      return { kind: 'error', reason: 'protocol', message, durationMs: 0 }
    }
  }

  return (webhook: ClaimedWebhook): Promise<Signer | SendFailure> => {
    const key = `${webhook.id} ${webhook.secrets.map(({ id }) => id).join(' ')}`
    let signer = signers.get(key)
    if (signer === undefined) {
      signer = make(webhook, key)
      signers.set(key, signer)
      const [oldest] = signers.keys()
      if (signers.size > keptSigners && oldest !== undefined) signers.delete(oldest)
    }
    return signer
  }
}
