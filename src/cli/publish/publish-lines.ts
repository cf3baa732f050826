import { setTimeout as delay } from 'node:timers/promises'
import type { StreamClient } from '../../client/streams.ts'
import { isMillraceError, MillraceError } from '../../errors/millrace-error.ts'
import { connect } from '../connection.ts'
import { explainError } from '../explain-error.ts'
import type { Io } from '../io.ts'
import { toBatches, withLine, type Batch } from './batches.ts'
import { createProgress } from './progress.ts'
import { openSource, readLines } from './read-lines.ts'

/** What {@link publishLines} takes. */
export interface LinesToPublish {
  stream: string
  /** `-`: stdin. */
  file: string
  fromLine: number
  /** Each batch gets a key made of it and its first line. Default: a random one. */
  idempotencyKey?: string | undefined
}

/** What {@link publishLines} has done. */
export interface PublishedLines {
  events: number
  batches: number
  /** The first and the last offset; null when there was nothing to publish. */
  first: number | null
  last: number | null
}

/** A server that restarts is back within so many tries; each waits twice as long as the last. */
const retryDelaysMs = [250, 500, 1000, 2000, 4000]

/**
 * Publishes NDJSON batch by batch, with a progress bar for whoever watches. Each batch carries an
 * idempotency key, so that it can be sent again when its answer got lost.
 *
 * @throws whatever stopped it; the message says which lines are stored and where to go on
 */
export async function publishLines(io: Io, what: LinesToPublish): Promise<PublishedLines> {
  const source = await openSource(io, what.file)
  const stream = connect(io).stream(what.stream)
  const keyBase = what.idempotencyKey ?? `cli-${crypto.randomUUID()}`
  const progress = createProgress(io, { name: what.stream, totalBytes: source.totalBytes })
  const done: PublishedLines = { events: 0, batches: 0, first: null, last: null }
  let nextLine = what.fromLine
  try {
    for await (const batch of toBatches(readLines(source.chunks), what.fromLine)) {
      nextLine = batch.lines[0]?.number ?? nextLine
      const offsets = await publishBatch(io, { stream, batch, keyBase, patient: done.batches > 0 })
      const end = batch.lines.at(-1)
      nextLine = (end?.number ?? 0) + 1
      done.events += offsets.length
      done.batches += 1
      done.first ??= offsets[0] ?? null
      done.last = offsets.at(-1) ?? done.last
      progress.update({ bytes: end?.end ?? 0, events: done.events })
    }
    if (io.signal.aborted) throw new MillraceError('ABORTED', 'stopped')
    return done
  } catch (error) {
    progress.clear()
    throw stopped(error, { io, events: done.events, nextLine, what })
  } finally {
    progress.clear()
  }
}

async function publishBatch(
  io: Io,
  {
    stream,
    batch,
    keyBase,
    patient,
  }: { stream: StreamClient; batch: Batch; keyBase: string; patient: boolean },
): Promise<number[]> {
  const text = batch.lines.map((line) => line.text).join('\n')
  const options = { idempotencyKey: `${keyBase}:${batch.lines[0]?.number}`, signal: io.signal }
  for (const delayMs of patient ? retryDelaysMs : []) {
    try {
      return (await stream.publishNdjson(text, options)).offsets
    } catch (error) {
      if (!isMillraceError(error) || !error.retryable) throw translate(error, batch)
      await delay(delayMs, undefined, { signal: io.signal }).catch(() => {})
    }
  }
  return stream.publishNdjson(text, options).then(
    ({ offsets }) => offsets,
    (error: unknown) => {
      throw translate(error, batch)
    },
  )
}

function translate(error: unknown, batch: Batch): unknown {
  return isMillraceError(error) ? withLine(error, batch) : error
}

/** What stopped it, what is stored, and how to go on, in one line. */
function stopped(
  error: unknown,
  { io, events, nextLine, what }: { io: Io; events: number; nextLine: number; what: LinesToPublish },
): unknown {
  // nothing is half done before the first batch
  if (events === 0 && what.fromLine === 1) return error
  const unsure = isMillraceError(error) && (error.code === 'ABORTED' || error.retryable)
  const rest = unsure
    ? `those of the batch from line ${nextLine} may be`
    : `nothing from line ${nextLine} on is`
  return new Error(
    `${explainError(error, io)}; the ${events} events before line ${nextLine} are published, ${rest}: go on with --from-line ${nextLine}`,
    { cause: error },
  )
}
