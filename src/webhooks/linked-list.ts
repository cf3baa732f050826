/** A place in a {@link LinkedList}. */
export interface Link<Value> {
  readonly value: Value
  previous: Link<Value> | null
  next: Link<Value> | null
}

/** Values in the order in which they came; any of them can be taken out at once. */
export interface LinkedList<Value> {
  add(value: Value): Link<Value>
  /** Takes it out; once is enough, twice does no harm. */
  remove(link: Link<Value>): void
  /** Takes the oldest out. */
  take(): Value | undefined
  readonly first: Link<Value> | null
  readonly size: number
  /** From the oldest; what is walked over may be taken out. */
  forEach(visit: (value: Value) => void): void
}

/**
 * For what comes and goes thousands of times a second. A Set or an array that is shifted would do, but V8
 * makes them a new store every few dozen changes, and once an old store has reached the old generation, it
 * keeps all that stood in it alive until a full collection: under load each young collection left 10 MB
 * behind, and with lists 2 MB.
 */
export function createLinkedList<Value>(): LinkedList<Value> {
  return new Chain<Value>()
}

/** A class, since lists are made with events: one of closures would be eight objects. */
class Chain<Value> implements LinkedList<Value> {
  first: Link<Value> | null = null
  size = 0
  #last: Link<Value> | null = null

  add(value: Value): Link<Value> {
    const link: Link<Value> = { value, previous: this.#last, next: null }
    if (this.#last === null) this.first = link
    else this.#last.next = link
    this.#last = link
    this.size++
    return link
  }

  remove(link: Link<Value>): void {
    if (link !== this.first && link.previous === null) return
    if (link.previous === null) this.first = link.next
    else link.previous.next = link.next
    if (link.next === null) this.#last = link.previous
    else link.next.previous = link.previous
    link.previous = null
    link.next = null
    this.size--
  }

  take(): Value | undefined {
    const { first } = this
    if (first === null) return undefined
    this.remove(first)
    return first.value
  }

  forEach(visit: (value: Value) => void): void {
    for (let link = this.first; link !== null;) {
      const { next } = link
      visit(link.value)
      link = next
    }
  }
}
