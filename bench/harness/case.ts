import type { Lab } from './lab.ts'
import type { RunOptions } from './options.ts'

/** What one measurement brought: names of metrics, and their values in the unit that the case gives them. */
export type Sample = Record<string, number>

/** One side of a comparison. */
export interface Contestant {
  /** `Millrace`, the name of a peer, or what the baseline does. */
  name: string
  /** How it is set up, where that could be done otherwise. */
  settings?: string
  /** Measures once. What has to be made ready is made ready before the clock starts. */
  measure(): Promise<Sample>
}

/** What is measured side by side. The first contestant is Millrace. */
export interface Case {
  id: string
  title: string
  /** The unit of each metric. */
  units: Record<string, string>
  contestants: Contestant[]
  /** Measured once, not in every round: what does not vary, or takes long. */
  once?: boolean
}

/** A part of the bench: some cases that share what they stand on. */
export interface Part {
  name: string
  /** Makes everything ready; the harness calls `close` at the end. */
  open(lab: Lab, options: RunOptions): Promise<OpenPart>
}

/** A part that is ready to be measured. */
export interface OpenPart {
  cases: Case[]
  /** What a reader of the figures should know. */
  notes?: string[]
  close(): Promise<void>
}
