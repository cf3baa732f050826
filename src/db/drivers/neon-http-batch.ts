import { startBatch, type BatchResults, type BatchWork } from '../batch.ts'
import type { DrizzlePg } from '../port.ts'
import { translateError } from '../translate-error.ts'

/** What of Neon's query function a batch needs. */
export interface BatchClient {
  query(text: string, values: unknown[], config: object): unknown
  /** Sends queries as one request, which is one transaction. */
  transaction(queries: unknown[]): Promise<unknown[]>
}

interface Statement {
  text: string
  values: unknown[]
  config: object
  resolve(answer: unknown): void
  reject(error: unknown): void
}

/**
 * Lets every write make its one statement, holds them back until all are there, sends them as one request, and
 * gives each its answer.
 *
 * @param toDrizzle a Drizzle database whose queries go to the given client
 */
export async function sendBatch<Items extends readonly unknown[]>(
  client: BatchClient,
  toDrizzle: (client: Pick<BatchClient, 'query'>) => DrizzlePg,
  work: BatchWork<Items>,
): Promise<BatchResults<Items>> {
  const statements: Statement[] = []
  let came = (): void => {}
  const recorder = {
    query: (text: string, values: unknown[], config: object) =>
      new Promise((resolve, reject) => {
        statements.push({ text, values, config, resolve, reject })
        came()
      }),
  }
  const items = startBatch(toDrizzle(recorder), work)
  const results = Promise.all(items)
  const allCame = new Promise<void>((resolve) => {
    // a write with nothing to do (an ack of no messages) makes no statement
    let without = 0
    came = () => {
      if (statements.length + without >= items.length) resolve()
    }
    for (const item of items) void item.then(() => (without++, came()), ignore)
    came()
  })
  try {
    // a write that is refused before it gets as far as a statement ends the batch: nothing was sent
    await Promise.race([allCame, results])
    await answer(client, statements)
    return (await results) as BatchResults<Items>
  } catch (error) {
    for (const { reject } of statements) reject(error)
    await Promise.allSettled(items)
    throw translateError(error)
  }
}

async function answer(client: BatchClient, statements: readonly Statement[]): Promise<void> {
  if (statements.length === 0) return
  const queries = statements.map(({ text, values, config }) => client.query(text, values, config))
  const answers = await client.transaction(queries)
  for (const [index, { resolve }] of statements.entries()) resolve(answers[index])
}

function ignore(): void {}
