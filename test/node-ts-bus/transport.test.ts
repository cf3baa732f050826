/** The cases of the bus's conformance suite, without its holds, and what that suite leaves out. */
import { handlerFor, type BusConfiguration } from '@node-ts/bus-core'
import { Command, type MessageAttributes } from '@node-ts/bus-messages'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { claimMessages } from '../../src/queues/claim-messages.ts'
import { sendMessages } from '../../src/queues/send-messages.ts'
import { bindQueue, listBindings, publishToTopic } from '../../src/queues/topics.ts'
import { topicOf } from '../../src/node-ts-bus/topic-name.ts'
import {
  createTransport,
  Happened,
  keepLog,
  Numbered,
  openBus,
  openDrivers,
  type OpenedDb,
} from './support.ts'

const patience = { timeout: 20_000 }
const startMs = 180_000

describe.each(openDrivers)('the bus transport on $name', ({ open }) => {
  let opened: OpenedDb
  beforeAll(async () => {
    opened = await open()
  }, startMs)
  afterAll(async () => {
    await opened.db.close()
    await opened.close()
  })

  it('brings a command to its handler, as its class and with all attributes', async () => {
    const seen: { message: Numbered; attributes: MessageAttributes }[] = []
    const bus = await openBus({
      transport: createTransport(opened.db, 'commands'),
      configure: (bus) =>
        bus.withHandler(
          handlerFor(Numbered, (message, attributes) => void seen.push({ message, attributes })),
        ),
    })
    const attributes = {
      correlationId: 'c-1',
      attributes: { text: 'a"\\{}\u{1f600}\0', number: 1.5, truth: false },
      stickyAttributes: { user: 'ü' },
    }
    await bus.send(new Numbered(7), attributes)
    await vi.waitFor(() => expect(seen).toHaveLength(1), patience)
    expect(seen[0]!.message).toBeInstanceOf(Numbered)
    expect(seen[0]).toEqual({ message: new Numbered(7), attributes })
  })

  it('brings what is sent and what is published alike to every queue that is bound', async () => {
    const seen: string[] = []
    const handling = (name: string) => (bus: BusConfiguration) =>
      bus.withHandler(
        handlerFor(Numbered, ({ number }) => void seen.push(`${name} ${number}`)),
        handlerFor(Happened, ({ number }) => void seen.push(`${name} ${number}`)),
      )
    const bus = await openBus({ transport: createTransport(opened.db, 'one'), configure: handling('one') })
    await openBus({ transport: createTransport(opened.db, 'two'), configure: handling('two') })
    await bus.send(new Numbered(1))
    await bus.publish(new Happened(2))
    await vi.waitFor(() => expect(seen.toSorted()).toEqual(['one 1', 'one 2', 'two 1', 'two 2']), patience)
  })

  it('brings what others publish to a topic of theirs, their headers as attributes', async () => {
    const seen: unknown[] = []
    await openBus({
      transport: createTransport(opened.db, 'outside'),
      configure: (bus) =>
        bus.withCustomHandler<{ kind: string }>(
          async (message, attributes) => void seen.push({ message, attributes }),
          { resolveWith: (message) => message.kind === 'theirs', topicIdentifier: 'outside.topic' },
        ),
    })
    const headers = { traceparent: '00-1', attributes: 'not JSON' }
    await publishToTopic(opened.db, 'outside.topic', [{ dataText: '{"kind":"theirs"}', headers }])
    await vi.waitFor(() => expect(seen).toHaveLength(1), patience)
    expect(seen[0]).toEqual({
      message: { kind: 'theirs' },
      attributes: { attributes: headers, stickyAttributes: {} },
    })
  })

  it('tries a message that fails so often, and then has it as a dead letter with its failure', async () => {
    const transport = createTransport(opened.db, 'poisoned')
    const attempts: number[] = []
    const bus = await openBus({
      transport,
      configure: (bus) =>
        bus
          .withMessageReadMiddleware(transport.recordErrors())
          .withRetryStrategy({
            calculateRetryDelay(attempt) {
              attempts.push(attempt)
              return 5
            },
          })
          .withConcurrency(2)
          .withHandler(
            handlerFor(Happened, () => {
              throw new RangeError('no such \0 thing')
            }),
          ),
    })
    await bus.publish(new Happened(3), {
      correlationId: 'kept',
      attributes: { a: 1 },
      stickyAttributes: { b: 2 },
    })
    const [letter, ...others] = await vi.waitFor(async () => {
      const letters = await transport.deadLetters()
      expect(letters).not.toEqual([])
      return letters
    }, patience)
    expect(others).toEqual([])
    expect(attempts).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    const reason = 'RangeError: no such \u{fffd} thing'
    expect(letter).toMatchObject({
      type: Happened.NAME,
      attempts: 10,
      reason,
      correlationId: 'kept',
      attributes: { a: 1 },
      stickyAttributes: { b: 2 },
      failure: { reason, queue: 'poisoned', attempts: 10 },
    })
    expect(JSON.parse(letter!.dataText)).toEqual({ ...new Happened(3) })
  }, 60_000)

  it('has a failed message as a dead letter at once, with the same attributes, until redriven or purged', async () => {
    const transport = createTransport(opened.db, 'failing')
    const seen: MessageAttributes[] = []
    const log = keepLog()
    const bus = await openBus({
      transport,
      log,
      configure: (configuration) =>
        configuration.withHandler(
          handlerFor(Numbered, async (_, attributes) => {
            seen.push(attributes)
            await bus.failMessage()
          }),
        ),
    })
    const attributes = { correlationId: 'kept', attributes: { a: 1 }, stickyAttributes: {} }
    const letters = (count: number) =>
      vi.waitFor(async () => {
        const found = await transport.deadLetters()
        expect(found).toHaveLength(count)
        return found
      }, patience)
    await bus.send(new Numbered(1), attributes)
    const [letter] = await letters(1)
    expect(letter).toMatchObject({ ...attributes, attempts: 1, failure: { queue: 'failing', attempts: 1 } })

    await bus.send(new Numbered(2), attributes)
    await letters(2)
    expect(await transport.redriveDeadLetters({ ids: [letter!.id] })).toEqual([letter!.id])
    await vi.waitFor(() => expect(seen).toHaveLength(3), patience)
    await letters(2)
    // the failure of its first life is no attribute of its second
    expect(seen).toEqual([attributes, attributes, attributes])
    expect(await transport.purgeDeadLetters({ ids: [letter!.id] })).toBe(1)
    expect(await transport.purgeDeadLetters()).toBe(1)
    await letters(0)
    // that the bus deletes what was failed is nothing to speak of
    expect(log.warnings).toEqual([])
  }, 60_000)

  it('has a body that cannot be parsed as a dead letter, and reads on', async () => {
    const transport = createTransport(opened.db, 'unreadable')
    const seen: number[] = []
    const bus = await openBus({
      transport,
      configure: (bus) => bus.withHandler(handlerFor(Numbered, ({ number }) => void seen.push(number))),
    })
    await sendMessages(opened.db, 'unreadable', [{ dataText: 'null' }, { dataText: '5' }])
    await bus.send(new Numbered(9))
    await vi.waitFor(() => expect(seen).toEqual([9]), patience)
    const reasons = (await transport.deadLetters()).map(({ reason, attempts }) => `${attempts} ${reason}`)
    expect(reasons).toEqual([
      expect.stringMatching(/^1 the body cannot be parsed: TypeError: /),
      '1 the body cannot be parsed: Error: it is not an object',
    ])
  })

  it('makes nothing for a bus that only sends', async () => {
    const log = keepLog()
    const bus = await openBus({
      transport: createTransport(opened.db, 'sender'),
      start: false,
      log,
      configure: (bus) => bus.asSendOnly().withHandler(handlerFor(SentOnly, () => {})),
    })
    await bus.send(new SentOnly())
    expect(log.warnings).toEqual(['No queue is bound to a command: nobody gets it.'])
    expect(await listBindings(opened.db, { topic: topicOf(SentOnly.NAME) })).toEqual([])
    expect(await listBindings(opened.db, { queue: 'sender' })).toEqual([])

    await bindQueue(opened.db, { topic: topicOf(SentOnly.NAME), queue: 'receiver' })
    await bus.send(new SentOnly())
    expect((await claimMessages(opened.db, 'receiver')).messages).toMatchObject([
      { type: SentOnly.NAME, dataText: JSON.stringify(new SentOnly()), maxAttempts: 10 },
    ])
  })

  it('sends to an address, and says so when there is none', async () => {
    const transport = createTransport(opened.db, 'addressed')
    await openBus({ transport, start: false, configure: (bus) => bus })
    await transport.sendToAddress('addressed', new Numbered(4), {
      attributes: { a: 1 },
      stickyAttributes: {},
    })
    const { messages } = await claimMessages(opened.db, 'addressed')
    expect(messages).toMatchObject([{ type: Numbered.NAME, headers: { attributes: '{"a":1}' } }])
    await expect(transport.sendToAddress('nowhere', new Numbered(4))).rejects.toMatchObject({
      code: 'ENDPOINT_NOT_FOUND',
      details: { queue: 'nowhere' },
    })
    expect(await listBindings(opened.db, { queue: 'nowhere' })).toEqual([])
  })

  it('only looks at queue and bindings where it is told to, and names what is missing', async () => {
    const verifying = () =>
      openBus({
        transport: createTransport(opened.db, 'verified', { provision: 'verify' }),
        start: false,
        configure: (bus) =>
          bus.withHandler(
            handlerFor(Numbered, () => {}),
            handlerFor(Happened, () => {}),
          ),
      })
    await expect(verifying()).rejects.toMatchObject({ code: 'ENDPOINT_NOT_FOUND' })
    expect(await listBindings(opened.db, { queue: 'verified' })).toEqual([])
    await bindQueue(opened.db, { topic: topicOf(Numbered.NAME), queue: 'verified' })
    await expect(verifying()).rejects.toMatchObject({
      code: 'ENDPOINT_NOT_FOUND',
      details: { queue: 'verified', missing: ['bus.:40test:2fhappened'] },
    })
    await bindQueue(opened.db, { topic: topicOf(Happened.NAME), queue: 'verified' })
    await verifying()
  })

  it('says what the queue is still bound to that nothing handles any more', async () => {
    await bindQueue(opened.db, { topic: topicOf(Happened.NAME), queue: 'lessened' })
    const log = keepLog()
    await openBus({
      transport: createTransport(opened.db, 'lessened'),
      start: false,
      log,
      configure: (bus) => bus.withHandler(handlerFor(Numbered, () => {})),
    })
    expect(log.warnings).toEqual(['The queue is bound to messages that nothing here handles.'])
    expect(await listBindings(opened.db, { queue: 'lessened' })).toHaveLength(2)
  })
})

class SentOnly extends Command {
  static readonly NAME = '@test/sent-only'
  $name = SentOnly.NAME
  $version = 1
}
