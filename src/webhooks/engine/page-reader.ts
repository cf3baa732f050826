import type { EventPage } from '../../streams/read-events.ts'

/** A page as handed to a webhook: what it holds after the webhook's own position. */
export interface SharedPage extends EventPage {
  /** The wake count of the stream when the read began: if it has moved on, there may be more. */
  generation: number
}

/** Reads each page of a stream once for all webhooks that stand at about the same place. */
export interface PageReader {
  /** The events of a stream after an offset, from memory where a page that covers it is there. */
  read(stream: string, after: number): Promise<SharedPage>
  /** As `read`, of what is in memory. */
  peek(stream: string, after: number): SharedPage | null
  /** A wake arrived: what was read before may miss something. */
  wake(stream: string): void
  /** The stream is known to reach up to an offset: a {@link wake}, unless it was read as far already. */
  reaches(stream: string, offset: number): void
  /** Reads on where a stream was left, if it was read before: whoever asks for that page next need not wait. */
  readOn(stream: string): Promise<void>
  /** How many wakes a stream has had. */
  generation(stream: string): number
}

/** Enough for webhooks that are a little apart; more would reach the old generation, and cost its collection. */
const keptPerStream = 2
/** Little enough for memory: pages are at most 4 MiB each. */
const keptPages = 16

interface KeptPage {
  stream: string
  after: number
  page: SharedPage
}

/** @param fetchPage reads one page from the database */
export function createPageReader(
  fetchPage: (stream: string, after: number) => Promise<EventPage>,
): PageReader {
  const generations = new Map<string, number>()
  const underway = new Map<string, Promise<SharedPage>>()
  let kept: KeptPage[] = []

  const generation = (stream: string): number => generations.get(stream) ?? 0

  function peek(stream: string, after: number): SharedPage | null {
    for (const { after: start, page, stream: of } of kept) {
      if (of !== stream || after < start || after > page.next) continue
      // the end of a page is an answer only while nothing has happened since
      if (after < page.next || (!page.more && page.generation === generation(stream)))
        return sliceAfter(page, after)
    }
    return null
  }

  async function fetchAndKeep(stream: string, after: number): Promise<SharedPage> {
    const page = { generation: generation(stream), ...(await fetchPage(stream, after)) }
    let ofStream = 1
    const others = kept.filter(
      (old) => old.stream !== stream || (old.after !== after && ofStream++ < keptPerStream),
    )
    kept = [{ stream, after, page }, ...others].slice(0, keptPages)
    return page
  }

  function wake(stream: string): void {
    generations.set(stream, generation(stream) + 1)
  }

  function read(stream: string, after: number): Promise<SharedPage> {
    const known = peek(stream, after)
    if (known !== null) return Promise.resolve(known)
    const id = `${generation(stream)} ${after} ${stream}`
    let reading = underway.get(id)
    if (reading === undefined) {
      reading = fetchAndKeep(stream, after).finally(() => underway.delete(id))
      underway.set(id, reading)
    }
    return reading
  }

  return {
    read,
    peek,
    wake,
    reaches(stream, offset) {
      const current = generation(stream)
      const isRead = ({ stream: of, page }: KeptPage): boolean =>
        of === stream && page.generation === current && page.next >= offset
      if (!kept.some(isRead)) wake(stream)
    },
    async readOn(stream) {
      const ends = kept.filter(({ stream: of }) => of === stream).map(({ page }) => page.next)
      // should it fail, whoever needs the page reads it, and tells of the failure
      if (ends.length > 0) await read(stream, Math.max(...ends)).catch(() => {})
    },
    generation,
  }
}

function sliceAfter(page: SharedPage, after: number): SharedPage {
  const from = page.events.findIndex((event) => event.offset > after)
  return { ...page, events: from < 0 ? [] : page.events.slice(from), next: Math.max(page.next, after) }
}
