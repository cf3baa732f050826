import { readFileSync } from 'node:fs'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { publishEvents } from '../../src/streams/publish-events.ts'
import { createSystemPorts } from '../../src/system-ports.ts'
import { createWebhook } from '../../src/webhooks/create-webhook.ts'
import { createDelivery } from '../../src/webhooks/deliver-event.ts'
import { drain } from '../../src/webhooks/engine/drain.ts'
import { createNodeSender } from '../../src/webhooks/node-sender.ts'
import { createNodeSigner } from '../../src/webhooks/node-sign.ts'
import { describeOnEveryDriver } from '../contract/drivers.ts'
import { startReceiver, type ReceivedRequest, type Receiver } from '../support/receiver.ts'
import { kindOf, countStatements } from './support/counting-db.ts'
import { offsetOf } from './support/world.ts'

interface PayloadCase {
  json: string
  why: string
  refused?: boolean
}

const vectors = JSON.parse(
  readFileSync(new URL('../vectors/payload-fidelity.json', import.meta.url), 'utf8'),
) as { cases: PayloadCase[] }
const cases = vectors.cases.filter(({ refused }) => refused !== true)

const ports = createSystemPorts()
const policy = { allowInsecure: true }

describeOnEveryDriver('deliveries', (given) => {
  let receiver: Receiver
  const sender = createNodeSender({ policy })
  const delivery = createDelivery({ sender, createSigner: createNodeSigner, sealer: null, ports })
  beforeAll(async () => {
    receiver = await startReceiver()
  })
  afterAll(async () => {
    await sender.close()
    await receiver.close()
  })

  const at = (path: string): ReceivedRequest[] => receiver.requests.filter((one) => one.path === path)
  const createOn = (stream: string, path: string) => {
    const url = `${receiver.url}${path}`
    return createWebhook(
      given().db,
      { stream, url, from: 'start', scheduleMs: [0, 0, 0], jitterPercent: 0 },
      { sealer: null, policy },
    )
  }

  it('carry every payload byte for byte, signed so that standardwebhooks verifies it (S9, W1, W2)', async () => {
    const { db } = given()
    const { secret } = await createOn('payloads', '/payloads')
    const { offsets } = await publishEvents(
      db,
      'payloads',
      cases.map(({ json, why }) => ({ type: 'case', key: why, dataText: json })),
    )
    const report = await drain({ db, ports, delivery, environment: null, budgetMs: 30_000 })
    expect(report).toMatchObject({ cut: false, webhooks: 1, nextDueInMs: null })
    const byOffset = new Map(at('/payloads').map((one) => [offsetOf(one), one]))
    for (const [index, { json, why }] of cases.entries()) {
      const { body, headers } = byOffset.get(offsets[index]!)!
      const text = body.toString('utf8')
      const data = text.slice(text.indexOf(',"data":') + ',"data":'.length, -1)
      expect(data, why).toBe(json.trim())
      expect(() => new Webhook(secret).verify(text, headers as Record<string, string>), why).not.toThrow()
    }
    expect(at('/payloads')).toHaveLength(cases.length)
  })

  it('have the same webhook-id and body on every attempt, and each signature is valid (W2)', async () => {
    const { db } = given()
    const { secret } = await createOn('attempts', '/attempts')
    receiver.answerNext({ status: 500 }, { reset: true })
    await publishEvents(db, 'attempts', [{ type: 't', dataText: '{"b":1.0,"a":"\\u0000"}' }])
    for (let tries = 0; tries < 10 && at('/attempts').length < 3; tries++) {
      await drain({ db, ports, delivery, environment: null, budgetMs: 10_000 })
    }
    const attempts = at('/attempts')
    expect(attempts).toHaveLength(3)
    expect(new Set(attempts.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
    expect(new Set(attempts.map(({ body }) => body.toString('utf8'))).size).toBe(1)
    for (const { body, headers } of attempts) {
      new Webhook(secret).verify(body.toString('utf8'), headers as Record<string, string>)
    }
  })

  it('of ten events to one webhook take four statements: claim, read, flush, claim', async () => {
    const { db, statements } = countStatements(given().db)
    await createOn('few', '/few')
    await publishEvents(
      db,
      'few',
      Array.from({ length: 10 }, (_, n) => ({ type: 't', key: `k${n % 3}`, dataText: String(n) })),
    )
    statements.length = 0
    await drain({ db, ports, delivery, environment: null, budgetMs: 20_000 })
    expect(at('/few')).toHaveLength(10)
    expect(statements.map(kindOf)).toEqual(['claim', 'read', 'flush', 'claim'])
  })
})

describe('the payload vectors', () => {
  it('are there', () => expect(cases.length).toBeGreaterThan(15))
})
