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
  let first: Link<Value> | null = null
  let last: Link<Value> | null = null
  let size = 0

  function remove(link: Link<Value>): void {
    if (link !== first && link.previous === null) return
    if (link.previous === null) first = link.next
    else link.previous.next = link.next
    if (link.next === null) last = link.previous
    else link.next.previous = link.previous
    link.previous = null
    link.next = null
    size--
  }

  return {
    add(value) {
      const link: Link<Value> = { value, previous: last, next: null }
      if (last === null) first = link
      else last.next = link
      last = link
      size++
      return link
    },
    remove,
    take() {
      if (first === null) return undefined
      const { value } = first
      remove(first)
      return value
    },
    get first() {
      return first
    },
    get size() {
      return size
    },
    forEach(visit) {
      for (let link = first; link !== null;) {
        const { next } = link
        visit(link.value)
        link = next
      }
    },
  }
}
