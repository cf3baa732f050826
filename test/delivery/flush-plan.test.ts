import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { rowsTouched } from '../support/rows-touched.ts'
import { createWorld, type World } from './support/world.ts'

const token = '0190b3c4-0000-7000-8000-000000000001'

const lease = `update millrace.webhooks set lease_token = $1, lease_until = now() + interval '1 minute'`

/** As a busy webhook is flushed: it gets on, one key falls in trouble, one gets out of it. */
const flush = `select o_news from millrace.flush_outcomes(
  array[$1::text], array[$2::uuid], array[$3::bigint], '{42}', '{0}', null,
  json_build_array(json_build_object('id', $1::text, 'offset', $3::bigint, 'unit', 'a', 'state', 'retrying',
    'attempts', 1, 'delay', 5000, 'status', 500, 'error', 'answered 500', 'answer', '')),
  json_build_array(json_build_object('id', $1::text, 'unit', 'b')), null, 30000)`

describe('a flush', () => {
  let world: World
  beforeEach(async () => {
    world = await createWorld()
  })
  afterEach(() => world.close())

  it('reads by index what it read by index when the tables were empty, though its session planned it then (W4)', async () => {
    const { id } = await world.webhook({})
    const client = new pg.Client(world.url)
    await client.connect()
    try {
      // a table known to be empty, of which no index is worth a look
      await client.query('vacuum analyze millrace.deliveries')
      await client.query('vacuum analyze millrace.webhooks')
      await client.query(lease, [token])
      await client.query(flush, [id, token, 1])
      await world.sql(
        `insert into millrace.deliveries (webhook_id, "offset", unit, state, attempts)
          select $1, i, 'u' || i, 'dead', 1 from generate_series(10, 20000) i`,
        [id],
      )
      const touched = await rowsTouched(client, ['webhooks', 'deliveries'], async () => {
        const { rows } = await client.query<{ o_news: string }>(flush, [id, token, 2])
        expect(JSON.parse(rows[0]!.o_news)).toMatchObject([{ webhookId: id, state: 'active' }])
      })
      expect(touched.scans).toBe(0)
      expect(touched.rows).toBeLessThan(50)
    } finally {
      await client.end()
    }
  })
})
