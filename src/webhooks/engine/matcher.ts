import type { StoredEvent } from '../../streams/event.ts'
import { typeMatcher } from '../../streams/type-filter.ts'
import type { ClaimedWebhook } from './claim-webhooks.ts'

/** Which events of the stream are to be sent: those of the types asked for that have no row yet. */
export function matcherOf({ types, recorded }: ClaimedWebhook): (event: StoredEvent) => boolean {
  if (types === null && recorded.length === 0) return all
  const matches = typeMatcher(types)
  const known = new Set(recorded)
  return ({ type, offset }) => matches(type) && !known.has(offset)
}

const all = (): boolean => true
