import type { StoredEvent } from '../../streams/event.ts'
import type { PageReader, SharedPage } from './page-reader.ts'

/** One webhook's way through its stream. */
export interface Cursor {
  /** There was nothing more when the stream was last looked at, and no wake has come since. */
  readonly atEnd: boolean
  /**
   * The next event after `after`; or up to where the stream is read now, when that page has no more; or null
   * while a page is on its way from the database: what was found before is sent meanwhile.
   *
   * @throws what kept the last page from being read, once; the next call reads again
   */
  next(after: number): StoredEvent | { readTo: number } | null
  /** There may be more. */
  wake(): void
  /** Forget the page, and one that is on its way: what comes next is read again. */
  rewind(): void
}

/** @param onRead called when a page that `next` asked for has come, or has failed to */
export function createCursor(reader: PageReader, stream: string, onRead: () => void): Cursor {
  let page: SharedPage | null = null
  let at = 0
  let atEnd = false
  let reading: object | null = null
  let failure: { error: unknown } | null = null

  function leave(done: SharedPage): { readTo: number } {
    atEnd = !done.more && done.generation === reader.generation(stream)
    page = null
    return { readTo: done.next }
  }

  function read(after: number): void {
    const mine = (reading = {})
    const end = (take: () => void) => (): void => {
      if (reading !== mine) return
      reading = null
      take()
      onRead()
    }
    reader.read(stream, after).then(
      (read) => end(() => ([page, at] = [read, 0]))(),
      (error: unknown) => end(() => (failure = { error }))(),
    )
  }

  function throwFailure(): void {
    if (failure === null) return
    const { error } = failure
    failure = null
    throw error
  }

  return {
    get atEnd() {
      return atEnd
    },
    next(after) {
      throwFailure()
      if (page === null && reading === null) {
        page = reader.peek(stream, after)
        at = 0
        if (page === null) read(after)
      }
      return page === null ? null : (page.events[at++] ?? leave(page))
    },
    wake: () => void (atEnd = false),
    rewind() {
      page = null
      reading = null
      failure = null
      atEnd = false
    },
  }
}
