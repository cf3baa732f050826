import { adoptEnvironment, type Adopted, type Identity } from '../db/adopt-environment.ts'
import { isMillraceError, MillraceError } from '../errors/millrace-error.ts'
import type { AdoptFlags } from './adopt.ts'
import type { Io } from './io.ts'
import { printable } from './printable.ts'
import { createStyle } from './style.ts'
import { withDatabase } from './with-database.ts'

/** Adopts the database, or tells what would be done. */
export async function runAdopt(io: Io, flags: AdoptFlags): Promise<void> {
  await withDatabase(io, 'millrace adopt', async ({ db, description }) => {
    const adopted = await adoptEnvironment(db, flags).catch(sayHow)
    const style = createStyle(io.stdout, io.env)
    const mark = flags.dryRun === true ? style.yellow('would adopt') : style.green('✓ adopted')
    io.stdout.write(`${mark} schema ${db.schema}: ${description}\n`)
    for (const line of linesOf(adopted, flags.dryRun === true)) io.stdout.write(`  ${line}\n`)
  })
}

function sayHow(error: unknown): never {
  if (!isMillraceError(error) || error.code !== 'CONFLICT') throw error
  throw new MillraceError('CONFLICT', `${error.message}; --again adopts it all the same`, { cause: error })
}

function linesOf({ before, after, webhooksPaused, leasesDropped }: Adopted, dryRun: boolean): string[] {
  const { webhooks, messages, locks } = leasesDropped
  const identity =
    before.installationId === after.installationId
      ? `${after.installationId}, as before`
      : `${before.installationId} -> ${dryRun ? 'a new one' : after.installationId}`
  return [
    `environment      ${nameOf(before)} -> ${nameOf(after)}`,
    `installation id  ${identity}`,
    `webhooks paused  ${webhooksPaused}`,
    `leases dropped   ${webhooks} of webhooks, ${messages} of messages, ${locks} of locks`,
  ]
}

function nameOf({ environment }: Identity): string {
  return environment === null ? '(none)' : printable(environment)
}
