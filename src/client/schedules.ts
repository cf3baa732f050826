import { jsonOf, segment, type Send } from './request.ts'
import type { CallOptions, PageOptions } from './types.ts'
import { bodyWithData, type DataInput } from './data.ts'

/** What a schedule is made of: `cron` (with `timeZone`) or `everyMs`, one of them. */
export type ScheduleInput = DataInput & {
  target: { kind: 'stream' | 'queue'; name: string }
  cron?: string
  /** IANA name. Default UTC. */
  timeZone?: string
  /** 100 to 31,536,000,000. */
  everyMs?: number
  /** What becomes of boundaries that were missed. Default `last`. */
  catchUp?: 'all' | 'last' | 'none'
  type?: string | null
  key?: string | null
  paused?: boolean
}

/** A schedule as the server shows it. */
export interface Schedule {
  name: string
  target: { kind: 'stream' | 'queue'; name: string }
  cron: string | null
  timeZone: string | null
  everyMs: number | null
  catchUp: 'all' | 'last' | 'none'
  type: string | null
  key: string | null
  data: unknown
  paused: boolean
  /** ISO 8601: the first boundary that has not fired yet. */
  nextAt: string | null
  lastAt: string | null
  failures: number
  lastError: string | null
}

/** The schedules of the server. */
export interface SchedulesClient {
  /** @throws INVALID_NAME, INVALID_INPUT */
  put(name: string, schedule: ScheduleInput, options?: CallOptions): Promise<Schedule>
  /** @throws NOT_FOUND */
  get(name: string, options?: CallOptions): Promise<Schedule>
  /** A page of them, by name. */
  list(options?: PageOptions): Promise<{ schedules: Schedule[]; next: string | null }>
  /** @throws NOT_FOUND */
  pause(name: string, options?: CallOptions): Promise<Schedule>
  /** @throws NOT_FOUND */
  resume(name: string, options?: CallOptions): Promise<Schedule>
  /**
   * Sends its message now. Returns the due time that it carries, and its offset or id.
   *
   * @throws NOT_FOUND
   */
  runNow(name: string, options?: CallOptions): Promise<{ dueAt: string; number: number }>
  /** @throws NOT_FOUND */
  delete(name: string, options?: CallOptions): Promise<void>
}

const collection = '/v1/schedules'

export function createSchedules(send: Send): SchedulesClient {
  const item = (name: string): string => `${collection}/${segment('schedule', name)}`
  const act = async <T>(name: string, action: string, { signal }: CallOptions = {}): Promise<T> =>
    jsonOf(await send({ method: 'POST', path: `${item(name)}/${action}`, signal }))
  return {
    async put(name, schedule, { signal } = {}) {
      return jsonOf(await send({ method: 'PUT', path: item(name), body: bodyWithData(schedule), signal }))
    },
    get: async (name, { signal } = {}) => jsonOf(await send({ path: item(name), signal })),
    async list({ limit, cursor, signal } = {}) {
      return jsonOf(await send({ path: collection, query: { limit, cursor }, signal }))
    },
    pause: (name, options) => act(name, 'pause', options),
    resume: (name, options) => act(name, 'resume', options),
    runNow: (name, options) => act(name, 'run', options),
    async delete(name, { signal } = {}) {
      await send({ method: 'DELETE', path: item(name), signal })
    },
  }
}
