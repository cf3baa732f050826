import type { Ports } from '../ports.ts'
import type { StoredEvent } from '../streams/event.ts'
import type { ClaimedWebhook } from './engine/claim-webhooks.ts'
import type { Delivery } from './engine/engine.ts'
import { formatEvent, type FormattedEvent } from './format.ts'
import { messageId } from './message-id.ts'
import { decideOutcome, type Outcome } from './outcome.ts'
import type { Sealer } from './seal.ts'
import type { Sender, SendFailure, SendResult } from './sender.ts'
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
  /** Those of webhooks that are being worked on. */
  const ready = new WeakMap<ClaimedWebhook, Signer>()
  return (installationId) => ({
    async attempt(webhook, event, cancel) {
      const signer = ready.get(webhook) ?? (await signerOf(webhook))
      if ('kind' in signer) return signer
      ready.set(webhook, signer)
      const id = messageId(installationId, event.offset)
      const timestamp = Math.floor(ports.clock.now() / 1000)
      const formatted = format(webhook, event, id)
      // on Node signing takes no promise, and thousands a second are felt
      const made = signer.sign(id, timestamp, formatted.body)
      const signature = typeof made === 'string' ? made : await made
      const headers = {
        ...webhook.headers,
        ...formatted.headers,
        'content-type': formatted.contentType,
        'webhook-id': id,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': signature,
      }
      const { url, timeoutMs } = webhook
      return sender.send({ url, headers, body: formatted.body, timeoutMs, cancel })
    },
    judge(webhook, event, attempt, result) {
      const outcome = decideOutcome({
        result,
        attempt,
        maxAttempts: webhook.maxAttempts,
        scheduleMs: webhook.scheduleMs ?? undefined,
        jitterPercent: webhook.jitterPercent,
        random: ports.random,
        now: new Date(ports.clock.now()),
      })
      options.onAttempt?.({ webhook, event, attempt, result, outcome })
      return outcome
    },
  })
}

function format(webhook: ClaimedWebhook, event: StoredEvent, id: string): FormattedEvent {
  return formatEvent(webhook.format, {
    id,
    type: event.type,
    key: event.key,
    dataText: event.dataText,
    publishedAt: event.publishedAt.toISOString(),
    streamName: webhook.stream,
  })
}

/** Returns the signer of a webhook, or why there is none. */
function createSignerCache({ createSigner, sealer }: DeliveryOptions) {
  const signers = new Map<string, Promise<Signer | SendFailure>>()

  async function make({ id, secrets }: ClaimedWebhook): Promise<Signer | SendFailure> {
    try {
      return await createSigner(
        await Promise.all(secrets.map(({ sealed }) => openSecret(sealer, sealed, id))),
      )
    } catch {
      const message =
        'the signing secret cannot be opened: is MILLRACE_ENCRYPTION_KEY the one it was sealed with?'
      return { kind: 'error', reason: 'protocol', message, durationMs: 0 }
    }
  }

  return (webhook: ClaimedWebhook): Promise<Signer | SendFailure> => {
    const key = `${webhook.id} ${webhook.secrets.map(({ id }) => id).join(' ')}`
    let signer = signers.get(key)
    if (signer === undefined) {
      signer = make(webhook)
      signers.set(key, signer)
      const [oldest] = signers.keys()
      if (signers.size > keptSigners && oldest !== undefined) signers.delete(oldest)
    }
    return signer
  }
}
