import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { createMillrace, type Millrace } from '../../src/millrace.ts'
import type { TestDatabase } from '../support/database.ts'
import { createMigratedDatabase } from '../support/migrated.ts'

let database: TestDatabase
let millrace: Millrace
let client: pg.Client
const seen: string[] = []

/** Tells, as what is stored and the wake are each committed, whether that commit waits for the disk. */
const telling = `
  create function millrace.tell() returns trigger language plpgsql as $$
  begin
    perform pg_notify('seen', tg_table_name || ' ' || current_setting('synchronous_commit'));
    return null;
  end $$;
  create trigger tell after insert on millrace.events execute function millrace.tell();
  create trigger tell after insert on millrace.messages execute function millrace.tell();
  create or replace function millrace.wake_stream(p_stream_id integer) returns void language sql as
    $$ select pg_notify('seen', 'wake ' || current_setting('synchronous_commit')) $$;
  create or replace function millrace.wake_queue(p_queue_id integer) returns void language sql as
    $$ select pg_notify('seen', 'wake ' || current_setting('synchronous_commit')) $$;`

beforeEach(async () => {
  database = await createMigratedDatabase()
  client = new pg.Client({ connectionString: database.url })
  await client.connect()
  millrace = createMillrace({ db: createNodePostgresDb({ url: database.url }), listen: false })
  seen.length = 0
  await client.query(telling)
  client.on('notification', ({ payload }) => seen.push(payload!))
  await client.query('listen seen')
})
afterEach(async () => {
  await millrace.close()
  await client.end()
  await database.drop()
})

describe('what is committed', () => {
  it('is on disk when a publish has returned, and the wake after it waits for no disk', async () => {
    await millrace.stream('s').publish({ type: 't', data: 1 })
    await expect.poll(() => seen).toEqual(['events on', 'wake off'])
  })

  it('is on disk when a send has returned, and likewise of a topic', async () => {
    await millrace.queue('q').send({ data: 1 })
    await expect.poll(() => seen).toEqual(['messages on', 'wake off'])
    seen.length = 0
    await millrace.topic('t').bind('q')
    await millrace.topic('t').publish([{ data: 1 }])
    await expect.poll(() => seen).toEqual(['messages on', 'wake off'])
  })

  it('is on disk with its wake in a transaction of the caller, whose commit is one', async () => {
    await millrace.db.transaction(async ({ drizzle }) => {
      await millrace.stream('s').publish({ type: 't', data: 1 }, { tx: drizzle as never })
    })
    await expect.poll(() => seen).toEqual(['events on', 'wake on'])
  })
})
