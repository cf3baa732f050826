import { Command, Event } from '@node-ts/bus-messages'

/** Where a process may die while it handles a message, in the order of things. */
export const crashSteps = [
  'begun',
  'row written',
  'event sent',
  'before the delete',
  'deleted',
  'before the commit',
  'committed',
] as const
export type CrashStep = (typeof crashSteps)[number]

/** Makes one row. */
export class WriteEffect extends Command {
  $name = '@test/write-effect'
  $version = 1
  readonly step: string

  constructor(step: string) {
    super()
    this.step = step
  }
}

/** Tells of one row. */
export class EffectDone extends Event {
  $name = '@test/effect-done'
  $version = 1
  readonly step: string

  constructor(step: string) {
    super()
    this.step = step
  }
}
