import { describe, expect, it } from 'vitest'
import { formatEvent, type EventToFormat } from '../../src/webhooks/format.ts'
import vectors from '../vectors/payload-fidelity.json' with { type: 'json' }

const event: EventToFormat = {
  id: 'msg_1',
  type: 'order.paid',
  key: 'order-7',
  dataText: '{"b":1.0,"a":12345678901234567890,"b":2,"nul":"\\u0000"}',
  publishedAt: '2026-01-15T12:00:00.000Z',
  streamName: 'orders',
}

describe('formatEvent (S9, W2)', () => {
  it('wraps the verbatim data by default', () => {
    expect(formatEvent('standard', event)).toEqual({
      contentType: 'application/json',
      headers: {},
      body: `{"type":"order.paid","timestamp":"2026-01-15T12:00:00.000Z","data":${event.dataText}}`,
    })
  })

  it('sends the verbatim data alone as raw', () => {
    expect(formatEvent('raw', event)).toEqual({
      contentType: 'application/json',
      headers: {},
      body: event.dataText,
    })
  })

  it('makes a structured CloudEvent', () => {
    expect(formatEvent('cloudevents', event)).toEqual({
      contentType: 'application/cloudevents+json; charset=utf-8',
      headers: {},
      body: `{"specversion":"1.0","id":"msg_1","source":"/streams/orders","type":"order.paid","subject":"order-7","time":"2026-01-15T12:00:00.000Z","datacontenttype":"application/json","data":${event.dataText}}`,
    })
  })

  it('makes a binary CloudEvent', () => {
    expect(formatEvent('cloudevents-binary', event)).toEqual({
      contentType: 'application/json',
      headers: {
        'ce-specversion': '1.0',
        'ce-id': 'msg_1',
        'ce-source': '/streams/orders',
        'ce-type': 'order.paid',
        'ce-subject': 'order-7',
        'ce-time': '2026-01-15T12:00:00.000Z',
      },
      body: event.dataText,
    })
  })

  it.each([null, ''])('leaves the subject out where the key is %j', (key) => {
    expect(formatEvent('cloudevents', { ...event, key }).body).not.toContain('subject')
    expect(formatEvent('cloudevents-binary', { ...event, key }).headers).not.toHaveProperty('ce-subject')
  })

  it('percent-encodes attributes in headers as the binding says', () => {
    const subject = (key: string) =>
      formatEvent('cloudevents-binary', { ...event, key }).headers['ce-subject']
    expect(subject('Euro € 😀')).toBe('Euro%20%E2%82%AC%20%F0%9F%98%80')
    expect(subject('a"b%c\r\nd')).toBe('a%22b%25c%0D%0Ad')
    expect(subject('!#$&~az')).toBe('!#$&~az')
    expect(subject('\ud800')).toBe('%EF%BF%BD')
  })

  it('escapes what stands around the data', () => {
    const { body } = formatEvent('standard', { ...event, type: 'a"b\\' })
    expect(JSON.parse(body)).toMatchObject({ type: 'a"b\\' })
  })

  it('refuses an unknown format', () => {
    const format = () => formatEvent('xml' as 'raw', event)
    expect(format).toThrow(expect.objectContaining({ details: { field: 'format' } }))
  })

  it('keeps every accepted payload byte for byte, the same each time', () => {
    for (const { json: dataText } of vectors.cases) {
      for (const format of ['standard', 'raw', 'cloudevents', 'cloudevents-binary'] as const) {
        const once = formatEvent(format, { ...event, dataText })
        expect(once.body).toContain(dataText)
        expect(formatEvent(format, { ...event, dataText })).toEqual(once)
      }
    }
  })
})
