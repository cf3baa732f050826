/** What happens to boundaries that came while no scheduler was running. */
export type CatchUp =
  /** Each of them fires, the newest 64 at most. */
  | 'all'
  /** Only the newest fires. */
  | 'last'
  /** The newest fires if it is at most five minutes late: a tick need not be punctual. */
  | 'none'

/** Where a schedule's messages go. */
export interface ScheduleTarget {
  kind: 'stream' | 'queue'
  name: string
}

/** When a schedule fires: by `cron` (with `timeZone`) or by `everyMs`, one of them. */
export interface Timing {
  /**
   * Five fields (minute, hour, day, month, weekday) or six (seconds first), with names, lists, ranges,
   * steps, and `L`, `W`, `#` for days; or `@hourly` to `@yearly`. At most 256 characters.
   *
   * Where clocks go **forward**, a cron with fixed times (no `*` and no step in its seconds, minutes and
   * hours, like `30 2 * * *`) whose time is skipped fires at the first moment after the gap (03:00); one
   * with a wildcard or a step (such as `* 2 * * *`) does not fire for what does not exist.
   * Where they go **back**, a cron with fixed times fires in the first of the two equal hours only; one
   * with a wildcard or a step fires in both.
   */
  cron?: string | null
  /** IANA time zone in which `cron` is read, such as `Europe/Berlin`. Default UTC. */
  timeZone?: string | null
  /**
   * Every so many milliseconds, from 100 to 31,536,000,000 (a year), at the multiples of it since
   * 1970-01-01T00:00:00Z: whoever puts the schedule again does not shift it. Summer time does not matter.
   */
  everyMs?: number | null
}

/** What {@link putSchedule} takes. */
export interface NewSchedule extends Timing {
  target: ScheduleTarget
  /** Default `last`. */
  catchUp?: CatchUp
  /** The type of each message: 1 to 256 characters. Only those to a queue may go without. */
  type?: string | null
  /** The key of each message: 1 to 512 characters; absent or null: none. */
  key?: string | null
  /** One JSON document, the data of each message byte for byte (outer white space is trimmed). */
  dataText: string
  /** Default: as it was, and false for a new one. */
  paused?: boolean
}

/** A schedule as stored. */
export interface Schedule {
  name: string
  target: ScheduleTarget
  cron: string | null
  timeZone: string | null
  everyMs: number | null
  catchUp: CatchUp
  type: string | null
  key: string | null
  dataText: string
  paused: boolean
  /** The first boundary that has not fired yet; null: no more come. */
  nextAt: Date | null
  /** The last boundary that fired; null: none has. */
  lastAt: Date | null
  /** How many firings in a row have failed. */
  failures: number
  /** Why the last one failed; null: it did not. */
  lastError: string | null
  createdAt: Date
  updatedAt: Date
}
