import type { Client } from '../../client/client.ts'
import type { WebhookInput } from '../../client/types.ts'
import { isMillraceError } from '../../errors/millrace-error.ts'

/** A webhook that lives as long as the command. */
export interface Registration {
  id: string
  /** What its deliveries are verified with. */
  secret: string
  /** Takes it away again. */
  remove(): Promise<void>
}

/** Whoever has pressed Ctrl-C waits no longer for a server that is gone. */
const removeMs = 5000

/**
 * Registers a webhook at the server. There is no giving up half-way: a webhook whose id nobody has
 * learnt would stay for ever.
 */
export async function register(client: Client, input: WebhookInput): Promise<Registration> {
  const created = await client.webhooks.create(input)
  return {
    id: created.id,
    secret: created.publicKey ?? created.secret,
    async remove() {
      try {
        await client.webhooks.delete(created.id, { signal: AbortSignal.timeout(removeMs) })
      } catch (error) {
        // somebody else has removed it, which is as good
        if (!isMillraceError(error) || error.code !== 'NOT_FOUND') throw error
      }
    },
  }
}
