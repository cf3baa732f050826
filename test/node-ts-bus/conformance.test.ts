/**
 * The conformance suite of the bus. It was written against an older bus-core, hence the shim; it wants the
 * test functions as globals; and it attaches its listeners after it has sent, so that a fast transport
 * outruns it: here, and only here, reads are held back for a moment.
 *
 * MILLRACE_BUS_SUITE_RUNS=10 runs it ten times in a row on each driver.
 */
import 'reflect-metadata'
import { BusConfiguration, BusInstance, type Transport } from '@node-ts/bus-core'
import type { Message, MessageAttributes } from '@node-ts/bus-messages'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { MillraceTransport } from '../../src/node-ts-bus/transport.ts'
import { publishToTopic } from '../../src/queues/topics.ts'
import { openDrivers } from './support.ts'

interface ConformanceSuite {
  TestSystemMessage: new () => object
  transportTests(
    transport: Transport,
    publishSystemMessage: (testSystemAttributeValue: string) => Promise<void>,
    systemMessageTopicIdentifier: string | undefined,
    readAllFromDeadLetterQueue: () => Promise<{ message: Message; attributes: MessageAttributes }[]>,
  ): void
}

Object.assign(globalThis, { describe, it, expect, beforeAll, afterAll })
Object.assign(BusConfiguration.prototype, {
  async initialize(this: BusConfiguration): Promise<BusInstance> {
    const bus = this.build()
    await bus.initialize()
    return bus
  },
})
Object.assign(BusInstance.prototype, {
  fail(this: BusInstance): Promise<void> {
    return this.failMessage()
  },
})

// by a name that the compiler does not follow: it would check the suite's sources by our rules
const suiteName: string = '@node-ts/bus-test'
const { TestSystemMessage, transportTests } = (await import(suiteName)) as ConformanceSuite

const runs = Number(process.env.MILLRACE_BUS_SUITE_RUNS ?? 1)
const holdMs = 80
const systemTopic = 'outside.system-message'

class HeldTransport extends MillraceTransport {
  override async readNextMessage(): ReturnType<MillraceTransport['readNextMessage']> {
    const message = await super.readNextMessage()
    await new Promise((resolve) => setTimeout(resolve, holdMs))
    return message
  }
}

for (const { name, open } of openDrivers) {
  for (let run = 1; run <= runs; run++) {
    describe(`the bus's conformance suite on ${name}, run ${run}`, async () => {
      const { db, close } = await open()
      afterAll(close)
      const transport = new HeldTransport({ db, queueName: 'conformance' })
      const publishSystemMessage = async (systemMessage: string): Promise<void> => {
        const dataText = JSON.stringify(new TestSystemMessage())
        await publishToTopic(db, systemTopic, [{ dataText, headers: { systemMessage } }])
      }
      const takeDeadLetters = async () => {
        const letters = await vi.waitFor(
          async () => {
            const found = await transport.deadLetters()
            expect(found).not.toEqual([])
            return found
          },
          { timeout: 20_000 },
        )
        await transport.purgeDeadLetters({ ids: letters.map(({ id }) => id) })
        return letters.map(({ dataText, ...attributes }) => ({ message: JSON.parse(dataText), attributes }))
      }
      transportTests(transport, publishSystemMessage, systemTopic, takeDeadLetters)
    })
  }
}
