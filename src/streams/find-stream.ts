import { eq } from 'drizzle-orm'
import type { Db } from '../db/port.ts'
import { translated } from '../db/run.ts'

/** The database's number of a stream, by which wakes name it; null when there is none. One statement. */
export async function findStream(db: Db, stream: string): Promise<number | null> {
  const { streams } = db.tables
  const [row] = await translated(
    db.drizzle.select({ id: streams.id }).from(streams).where(eq(streams.name, stream)),
  )
  return row?.id ?? null
}
