// The parts of webhooks that lean on what a runtime brings (WebCrypto, fetch), to be called from outside.
import { createFetchSender } from '../../../src/webhooks/fetch-sender.ts'
import { createSealer } from '../../../src/webhooks/seal.ts'
import type { SendRequest } from '../../../src/webhooks/sender.ts'
import { generateSecret, type SignatureVersion } from '../../../src/webhooks/secrets.ts'
import { createSigner } from '../../../src/webhooks/sign.ts'
import type { TargetPolicy } from '../../../src/webhooks/target-url.ts'
import { verifyWebhook } from '../../../src/webhooks/verify.ts'

const calls = {
  async sign(input: { secrets: string[]; id: string; timestamp: number; body: string }) {
    const signer = await createSigner(input.secrets)
    return signer.sign(input.id, input.timestamp, input.body)
  },
  generate: (version: SignatureVersion) => generateSecret(version),
  async verify(input: { secret: string; headers: Record<string, string>; body: string; now: number }) {
    const { id } = await verifyWebhook({ ...input, now: new Date(input.now) })
    return id
  },
  async seal(input: { key: string; text: string; context: string }) {
    const sealer = await createSealer({ current: input.key })
    return sealer.seal(input.text, input.context)
  },
  async open(input: { key: string; sealed: string; context: string }) {
    const sealer = await createSealer({ current: input.key })
    return sealer.open(input.sealed, input.context)
  },
  async send(input: { request: SendRequest; policy: TargetPolicy }) {
    const { policy } = input
    return createFetchSender({ policy, fetch: (url, init) => fetch(url, init) }).send(input.request)
  },
}

/** What can be called, with the types of input and answer. */
export type Calls = typeof calls

export default {
  async fetch(request: Request): Promise<Response> {
    const { name, input } = (await request.json()) as { name: keyof Calls; input: never }
    try {
      return Response.json({ answer: await calls[name](input) })
    } catch (error) {
      const { code, message } = error as { code?: string; message: string }
      return Response.json({ error: { code, message } })
    }
  },
}
