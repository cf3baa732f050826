/** Another event store, set up as its documentation recommends for speed. */
export interface EventLog {
  name: string
  settings: { append: string; read: string }
  append(stream: string, data: readonly Record<string, unknown>[]): Promise<void>
  /** Reads a page; pass `next` as `after` to go on. */
  read(stream: string, after: number, limit: number): Promise<{ count: number; next: number }>
  close(): Promise<void>
}
