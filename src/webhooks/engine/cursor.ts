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
  return new PageCursor(reader, stream, onRead)
}

class PageCursor implements Cursor {
  atEnd = false
  readonly #reader: PageReader
  readonly #stream: string
  readonly #onRead: () => void
  #page: SharedPage | null = null
  #at = 0
  #reading: object | null = null
  #failure: { error: unknown } | null = null

  constructor(reader: PageReader, stream: string, onRead: () => void) {
    this.#reader = reader
    this.#stream = stream
    this.#onRead = onRead
  }

  next(after: number): StoredEvent | { readTo: number } | null {
    this.#throwFailure()
    if (this.#page === null && this.#reading === null) {
      this.#page = this.#reader.peek(this.#stream, after)
      this.#at = 0
      if (this.#page === null) this.#read(after)
    }
    if (this.#page === null) return null
    return this.#page.events[this.#at++] ?? this.#leave(this.#page)
  }

  wake(): void {
    this.atEnd = false
  }

  rewind(): void {
    this.#page = null
    this.#reading = null
    this.#failure = null
    this.atEnd = false
  }

  #leave(done: SharedPage): { readTo: number } {
    this.atEnd = !done.more && done.generation === this.#reader.generation(this.#stream)
    this.#page = null
    return { readTo: done.next }
  }

  #read(after: number): void {
    const mine = (this.#reading = {})
    const end = (page: SharedPage | null, failure: { error: unknown } | null): void => {
      if (this.#reading !== mine) return
      this.#reading = null
      this.#page = page
      this.#at = 0
      this.#failure = failure
      this.#onRead()
    }
    this.#reader.read(this.#stream, after).then(
      (page) => end(page, null),
      (error: unknown) => end(null, { error }),
    )
  }

  #throwFailure(): void {
    if (this.#failure === null) return
    const { error } = this.#failure
    this.#failure = null
    throw error
  }
}
