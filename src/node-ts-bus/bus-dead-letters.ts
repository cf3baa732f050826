import type { Db } from '../db/port.ts'
import { listDeadLetters, type DeadLetter, type DeadLetterPage } from '../queues/dead-letters.ts'
import { decodeAttributes, type BusAttributes } from './attributes.ts'
import { failureOf, type BusFailure } from './failure.ts'

/** A dead letter of the bus; `type` is the message's `$name`, `dataText` its body. */
export interface BusDeadLetter extends DeadLetter, BusAttributes {
  /** Undefined when its last lease ran out, with nobody there to say why. */
  failure: BusFailure | undefined
}

/** The dead letters of a queue with their attributes decoded, the oldest message first. */
export async function listBusDeadLetters(
  db: Db,
  queue: string,
  page?: DeadLetterPage,
): Promise<BusDeadLetter[]> {
  const letters = await listDeadLetters(db, queue, page)
  return letters.map((letter) => ({
    ...letter,
    ...decodeAttributes(letter.headers),
    failure: failureOf(letter.headers),
  }))
}
