import { createLinkedList, type Link } from '../linked-list.ts'
import type { Item } from './units.ts'

/** An item that is being sent. */
export type SendingLink = Link<{ item: Item; since: number }>

/** What a lane is sending, the oldest first. */
export interface Sending {
  add(item: Item, since: number): SendingLink
  remove(link: SendingLink): void
  /** The highest offset of those that were taken from the stream; 0: there is none. */
  furthest(): number
  /** Those that were begun at `time` or before. */
  begunBy(time: number): Item[]
  readonly size: number
}

export function createSending(): Sending {
  return new SentItems()
}

class SentItems implements Sending {
  readonly #sent = createLinkedList<SendingLink['value']>()

  add(item: Item, since: number): SendingLink {
    return this.#sent.add({ item, since })
  }

  remove(link: SendingLink): void {
    this.#sent.remove(link)
  }

  furthest(): number {
    let offset = 0
    this.#sent.forEach(({ item }) => {
      if (item.entry !== null) offset = Math.max(offset, item.event.offset)
    })
    return offset
  }

  begunBy(time: number): Item[] {
    const items: Item[] = []
    for (let link = this.#sent.first; link !== null && link.value.since <= time; link = link.next)
      items.push(link.value.item)
    return items
  }

  get size(): number {
    return this.#sent.size
  }
}
