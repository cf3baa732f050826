import { canShare, shareStatement } from '../db/share-statement.ts'
import type { Db } from '../db/port.ts'
import { isMillraceError } from '../errors/millrace-error.ts'
import type { NewEvent } from './event.ts'

/** Where an event got. */
export interface Place {
  offset: number
  streamId: number
}

/** Larger calls go by themselves, so that no small one waits for them. */
const maxOfCall = { events: 100, characters: 16_384 }
/** With the most characters of a call, a statement has at most 16 MB. */
const maxOfStatement = 1000
/** Publishes for one database of a process: to each stream on its own. */
export type SharedPublish = (stream: string, events: readonly NewEvent[]) => Promise<Place[]>

const ofDatabases = new WeakMap<Db, SharedPublish>()

/** Whether a publish may share a statement with others that are under way in this process. */
export function mayShare(db: Db, events: readonly NewEvent[]): boolean {
  if (!canShare(db) || events.length === 0 || events.length > maxOfCall.events) return false
  let characters = 0
  for (const { dataText } of events) characters += dataText.length
  return characters <= maxOfCall.characters
}

/** The publishes of a database that share statements: made once a database. */
export function sharedPublishOf(
  db: Db,
  append: (stream: string, events: readonly NewEvent[]) => Promise<Place[]>,
): SharedPublish {
  let shared = ofDatabases.get(db)
  if (shared === undefined) {
    shared = sharePublishes(append)
    ofDatabases.set(db, shared)
  }
  return shared
}

function sharePublishes(
  append: (stream: string, events: readonly NewEvent[]) => Promise<Place[]>,
): SharedPublish {
  const streams = new Map<string, (events: readonly NewEvent[]) => Promise<Place[]>>()
  return (stream, events) => {
    let share = streams.get(stream)
    if (share === undefined) {
      share = shareStatement((all) => append(stream, all), {
        maxItems: maxOfStatement,
        isOnesFault,
        // a process may publish to any number of streams in its life
        onIdle: () => streams.delete(stream),
      })
      streams.set(stream, share)
    }
    return share(events)
  }
}

/** What Postgres says to a value before anything is stored: it cannot be, breaks a constraint, or is too deep. */
function isOnesFault(error: unknown): boolean {
  return isMillraceError(error) && /^(22|23|54001)/.test(String(error.details.sqlState))
}
