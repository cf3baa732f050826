import { createPollingAttach } from '../streams/poll-wake.ts'
import { createHeldPace } from '../streams/held-pace.ts'
import { findStream } from '../streams/find-stream.ts'
import { readEvents, type EventPage, type ReadRange } from '../streams/read-events.ts'
import type { AppOptions } from './context.ts'

/** What a long poll waits for. */
export interface LongPoll {
  stream: string
  range: ReadRange
  waitMs: number
}

/**
 * Reads until there is an event or the time is up; ends early, with an empty page, when the client goes or
 * the host shuts down.
 */
export async function waitForPage(
  options: AppOptions,
  { stream, range, waitMs }: LongPoll,
  gone: AbortSignal,
): Promise<EventPage> {
  const { db, ports, shutdown } = options
  const over = new AbortController()
  const timer = ports.clock.setTimeout(() => over.abort(), waitMs)
  const end = AbortSignal.any([over.signal, gone, ...(shutdown === undefined ? [] : [shutdown])])
  const attach = options.attach ?? createPollingAttach(ports.clock)
  // attach, then read (S6)
  const wake = attach(await findStream(db, stream))
  const held = createHeldPace()
  try {
    for (let after = range.after; ;) {
      const page = await readEvents(db, stream, { ...range, after })
      if (page.events.length > 0 || end.aborted) return page
      after = page.next
      held.saw(page)
      if (!page.more && (await wake.wait(end, held.waitMs())) === 'aborted') return page
    }
  } finally {
    ports.clock.clearTimeout(timer)
    wake.close()
  }
}
