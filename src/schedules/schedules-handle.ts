import type { Db, TxOption } from '../db/port.ts'
import { jsonTextOf } from '../json/json-text-of.ts'
import { deleteSchedule, pauseSchedule, resumeSchedule } from './change-schedule.ts'
import { putSchedule } from './put-schedule.ts'
import { getSchedule, listSchedules, type SchedulePage } from './read-schedules.ts'
import { runNow, type RanNow } from './run-now.ts'
import type { NewSchedule, Schedule } from './schedule.ts'

/** A schedule to put; its data becomes JSON. */
export type ScheduleInput = Omit<NewSchedule, 'dataText'> & { data: unknown }

/** The schedules of a database; they fire wherever a forwarder, a development server or the edge's cron runs. */
export interface Schedules {
  /** Creates a schedule or changes one: an application may put its schedules at every start. */
  put(name: string, schedule: ScheduleInput, options?: TxOption): Promise<Schedule>
  get(name: string, options?: TxOption): Promise<Schedule | null>
  list(range?: { after?: string; limit?: number }): Promise<SchedulePage>
  /** Returns whether there was one. */
  delete(name: string, options?: TxOption): Promise<boolean>
  pause(name: string, options?: TxOption): Promise<Schedule>
  resume(name: string, options?: TxOption): Promise<Schedule>
  /** Sends its message once, now. */
  runNow(name: string, options?: TxOption): Promise<RanNow>
}

/** Makes no statement. */
export function createSchedules(db: Db): Schedules {
  return {
    async put(name, { data, ...rest }, options) {
      return putSchedule(db, name, { ...rest, dataText: jsonTextOf(data, 'data') }, options)
    },
    get: (name, options) => getSchedule(db, name, options),
    list: (range) => listSchedules(db, range),
    delete: (name, options) => deleteSchedule(db, name, options),
    pause: (name, options) => pauseSchedule(db, name, options),
    resume: (name, options) => resumeSchedule(db, name, options),
    runNow: (name, options) => runNow(db, name, options),
  }
}
