import type { StoredEvent } from '../../streams/event.ts'
import type { PageReader, SharedPage } from './page-reader.ts'

/** One webhook's way through its stream. */
export interface Cursor {
  /** There was nothing more when the stream was last looked at, and no wake has come since. */
  readonly atEnd: boolean
  /**
   * The next event after `after`; or up to where the stream is read now, when that page has no more.
   * Reads a page from the database when none is at hand.
   */
  next(after: number): Promise<StoredEvent | { readTo: number }>
  /** There may be more. */
  wake(): void
  /** Forget the page: what comes next is read again. */
  rewind(): void
}

export function createCursor(reader: PageReader, stream: string): Cursor {
  let page: SharedPage | null = null
  let at = 0
  let atEnd = false

  function leave(done: SharedPage): { readTo: number } {
    atEnd = !done.more && done.generation === reader.generation(stream)
    page = null
    return { readTo: done.next }
  }

  return {
    get atEnd() {
      return atEnd
    },
    async next(after) {
      if (page === null) {
        page = await reader.read(stream, after)
        at = 0
      }
      return page.events[at++] ?? leave(page)
    },
    wake: () => void (atEnd = false),
    rewind() {
      page = null
      atEnd = false
    },
  }
}
