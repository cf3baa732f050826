/** An event to be published, its data already JSON text. */
export interface NewEvent {
  /** What happened, such as `order.created`: 1 to 256 characters. */
  type: string
  /** One JSON document, stored and delivered byte for byte (outer white space is trimmed). */
  dataText: string
  /** What the event is about, the unit of per-key order: 1 to 512 characters; absent or null: none. */
  key?: string | null
  /** Metadata that travels with the event: at most 64 names, 8 KiB in all. */
  headers?: Record<string, string> | null
}

/** An event as stored. */
export interface StoredEvent {
  /** Its number: immutable, ascending within the stream, gaps legal. */
  offset: number
  type: string
  key: string | null
  /** The data, byte for byte as published. */
  dataText: string
  headers: Record<string, string> | null
  /** When it was appended, by the database's clock; not when its transaction committed. */
  publishedAt: Date
}
