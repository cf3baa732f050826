/** What a ring says: which streams may have something new. A hint; the rows are the truth. */
export interface Ring {
  /** The streams' numbers; `all`: look at everything. */
  streamIds: readonly number[] | 'all'
}

/** More streams than that are said as `all`, so that a ring stays a few KB. */
export const mostStreams = 100

/** The body of a ring; empty for `all`. */
export function formatRing({ streamIds }: Ring): string {
  if (streamIds === 'all' || streamIds.length > mostStreams) return ''
  return JSON.stringify({ streamIds })
}

/** Reads a body; null when it is no ring. */
export function parseRing(body: string): Ring | null {
  if (body === '') return { streamIds: 'all' }
  const ids = readJson(body)?.streamIds
  if (!Array.isArray(ids) || ids.length === 0 || ids.length > mostStreams) return null
  return ids.every(isStreamId) ? { streamIds: ids } : null
}

function isStreamId(id: unknown): id is number {
  return Number.isSafeInteger(id) && (id as number) > 0
}

function readJson(text: string): { streamIds?: unknown } | null {
  try {
    return JSON.parse(text) as { streamIds?: unknown } | null
  } catch {
    return null
  }
}
