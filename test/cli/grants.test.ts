import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createRuntimeRole, type RuntimeRole } from '../support/runtime-role.ts'
import { run } from './support/run.ts'

let bare: RuntimeRole
let empty: TestDatabase

beforeAll(async () => {
  bare = await createRuntimeRole(() => [])
  empty = await createTestDatabase()
})
afterAll(async () => {
  // the role has grants in both, and goes last
  await empty.drop()
  await bare.drop()
})

describe('millrace grants', () => {
  it('prints a script after which the role lacks nothing', async () => {
    const check = () => run(['grants', '--check'], { env: { DATABASE_URL: bare.url } })
    const before = await check()
    expect(before.code).toBe(1)
    expect(before.out).toContain('lacks USAGE on schema millrace\n')
    expect(before.out).toContain('lacks INSERT on table offsets\n')
    const { out, code } = await run(['grants', '--role', bare.role])
    expect(code).toBe(0)
    expect(out).toMatch(/^(GRANT [^\n]+;\n)+$/)
    const owner = new pg.Client({ connectionString: bare.ownerUrl })
    await owner.connect()
    await owner.query(out)
    await owner.query(out)
    await owner.end()
    expect(await check()).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^✓ the role has all that/) as string,
    })
    const asOwner = { env: { DATABASE_URL: bare.ownerUrl } }
    expect(await run(['grants', '--check', '--role', bare.role], asOwner)).toMatchObject({ code: 0 })
  })

  it('checks no role that is not there, nor a database without the tables', async () => {
    const check = (url: string, ...args: string[]) =>
      run(['grants', '--check', ...args], { env: { DATABASE_URL: url } })
    for (const url of [empty.url, bare.ownerUrl]) {
      expect(await check(url, '--role', 'nobodyhere')).toMatchObject({
        code: 1,
        out: '',
        err: expect.stringContaining('there is no role "nobodyhere"') as string,
      })
    }
    expect(await check(empty.url)).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringContaining('(NOT_MIGRATED)') as string,
    })
  })

  it('names the schema that is set', async () => {
    const { out } = await run(['grants', '--role', 'app'], { env: { MILLRACE_SCHEMA: 'events_of_mine' } })
    expect(out).toContain('GRANT SELECT ON TABLE "events_of_mine"."events" TO "app";\n')
    expect(out).not.toContain('"millrace"')
    expect((await run(['grants', '--role', 'app', '--schema', 'other'])).out).toContain('"other"."events"')
  })

  it('asks for the role', async () => {
    expect(await run(['grants'])).toMatchObject({ code: 2, err: expect.stringContaining('--role') as string })
    expect(await run(['grants', '--role', ''])).toMatchObject({
      code: 1,
      err: expect.stringContaining('1 to 63 bytes') as string,
    })
  })
})

describe('millrace migrate --role', () => {
  it('prints its plan with the grants, does nothing in a dry run, and does it all without', async () => {
    const migrate = (...args: string[]) =>
      run(['migrate', '--role', bare.role, ...args], { env: { DATABASE_URL: empty.url } })
    const planned = await migrate('--dry-run')
    expect(planned.out).toMatch(/^would apply 0000_tables\n  sequence event_offset\n  table api_keys, /)
    expect(planned.out).toContain('would apply 0003_publish\n  procedure publish\n')
    expect(planned.out).toContain(`would grant USAGE ON SCHEMA "millrace" TO "${bare.role}"\n`)
    expect((await migrate('--dry-run')).out).toBe(planned.out)
    const done = await migrate()
    expect(done).toMatchObject({ code: 0, err: '' })
    expect(done.out).toContain(`✓ ${bare.role} has all that running Millrace needs\n`)
    const asRole = new URL(empty.url)
    asRole.username = bare.role
    asRole.password = new URL(bare.url).password
    const checked = await run(['grants', '--check'], { env: { DATABASE_URL: asRole.href } })
    expect(checked).toMatchObject({ code: 0, err: '' })
  })
})
