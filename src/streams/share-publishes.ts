import type { Db } from '../db/port.ts'
import { canShare, shareStatement } from '../db/share-statement.ts'
import { isMillraceError } from '../errors/millrace-error.ts'
import { appendEvents, type Published } from './append-events.ts'
import type { NewEvent } from './event.ts'

/** Larger calls go by themselves, so that no small one waits for them. */
const maxOfCall = { events: 100, characters: 16_384 }
/** With the most characters of a call, a statement has at most 16 MB. */
const maxOfStatement = 1000

/** Whether a publish may share a statement with others that are under way in this process. */
export function mayShare(db: Db, events: readonly NewEvent[]): boolean {
  if (!canShare(db) || events.length === 0 || events.length > maxOfCall.events) return false
  let characters = 0
  for (const { dataText } of events) characters += dataText.length
  return characters <= maxOfCall.characters
}

/** Where an event got. */
interface Place {
  offset: number
  streamId: number
}

type Share = (events: readonly NewEvent[]) => Promise<Place[]>

/** By stream; only those that are being published to, of which a process has any number in its life. */
const sharesOf = new WeakMap<Db, Map<string, Share>>()

/** As appendEvents, for at least one event, sharing statements with the others to the stream. */
export async function appendShared(db: Db, stream: string, events: readonly NewEvent[]): Promise<Published> {
  const places = await shareOf(db, stream)(events)
  return { offsets: places.map(({ offset }) => offset), replayed: false, streamId: places[0]!.streamId }
}

function shareOf(db: Db, stream: string): Share {
  const shares = sharesOf.get(db) ?? new Map<string, Share>()
  sharesOf.set(db, shares)
  let share = shares.get(stream)
  if (share === undefined) {
    share = shareStatement((all) => appendPlaces(db, stream, all), {
      maxItems: maxOfStatement,
      isOnesFault,
      onIdle: () => shares.delete(stream),
    })
    shares.set(stream, share)
  }
  return share
}

async function appendPlaces(db: Db, stream: string, events: readonly NewEvent[]): Promise<Place[]> {
  const { offsets, streamId } = await appendEvents(db, stream, events)
  return offsets.map((offset) => ({ offset, streamId }))
}

/** What Postgres says to a value before anything is stored: it cannot be, breaks a constraint, or is too deep. */
function isOnesFault(error: unknown): boolean {
  return isMillraceError(error) && /^(22|23|54001)/.test(String(error.details.sqlState))
}
