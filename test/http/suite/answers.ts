import { sql } from 'drizzle-orm'
import { expect } from 'vitest'
import { runQuery } from '../../../src/db/run.ts'
import type { ErrorCode } from '../../../src/errors/codes.ts'
import { errorCodes } from '../../../src/errors/codes.ts'
import type { Api } from './target.ts'

/** A problem document, as far as the tests look. */
export interface Problem {
  type: string
  title: string
  status: number
  detail: string
  code: ErrorCode
  field?: string
}

/** Checks that an answer is a problem document with the code, naming the field, and returns it. */
export async function expectProblem(response: Response, code: ErrorCode, field?: string): Promise<Problem> {
  const problem = (await response.json()) as Problem
  expect(problem).toMatchObject({ code, ...(field === undefined ? {} : { field }) })
  expect(response.status).toBe(errorCodes[code].status)
  expect(problem).toMatchObject({
    type: `/errors/${code}`,
    title: errorCodes[code].title,
    status: errorCodes[code].status,
  })
  expect(problem.detail.length).toBeGreaterThan(0)
  expect(response.headers.get('content-type')).toBe('application/problem+json')
  return problem
}

/** Checks the status and returns the JSON. */
export async function expectJson<T = unknown>(response: Response, status: number): Promise<T> {
  const text = await response.text()
  expect({ status: response.status, text: response.status === status ? '' : text }).toEqual({
    status,
    text: '',
  })
  expect(response.headers.get('content-type')).toContain('application/json')
  return JSON.parse(text) as T
}

/** How many events of a stream are stored; a stream that does not exist has none. */
export async function storedEvents(api: Api, stream: string): Promise<number> {
  const { events, streams } = api.db.tables
  const [row] = await runQuery<{ count: string }>(
    api.db,
    sql`select count(*)::text from ${events} e join ${streams} s on s.id = e.stream_id where s.name = ${stream}`,
  )
  return Number(row?.count)
}

/** Whether a stream exists: a refused publish must not leave even that. */
export async function streamExists(api: Api, stream: string): Promise<boolean> {
  const { streams } = api.db.tables
  const rows = await runQuery(api.db, sql`select 1 from ${streams} s where s.name = ${stream}`)
  return rows.length > 0
}
