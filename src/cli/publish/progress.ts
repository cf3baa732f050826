import type { Io } from '../io.ts'
import { createStyle } from '../style.ts'

/** A line on stderr that says how far a long task has come; nothing where nobody watches. */
export interface Progress {
  update(done: { bytes: number; events: number }): void
  /** Takes the line away. */
  clear(): void
}

/** Faster than an eye needs, slow enough to cost nothing. */
const redrawMs = 100
const barWidth = 24

export function createProgress(io: Io, task: { name: string; totalBytes: number | null }): Progress {
  const { stderr } = io
  if (!stderr.isTTY) return { update() {}, clear() {} }
  const style = createStyle(stderr, io.env)
  const startedAt = io.now()
  let drawnAt = Number.NEGATIVE_INFINITY
  let shown = false
  return {
    update({ bytes, events }) {
      const now = io.now()
      if (now - drawnAt < redrawMs) return
      drawnAt = now
      shown = true
      const perSecond = Math.round(events / Math.max((now - startedAt) / 1000, 0.001))
      const count = `${grouped(events)} events, ${grouped(perSecond)}/s`
      const bar = task.totalBytes === null ? '' : barOf(bytes / Math.max(task.totalBytes, 1), style.cyan)
      stderr.write(`\r\u001b[K${task.name} ${bar}${style.dim(count)}`)
    },
    clear() {
      if (shown) stderr.write('\r\u001b[K')
      shown = false
    },
  }
}

function barOf(share: number, paint: (text: string) => string): string {
  const filled = Math.min(barWidth, Math.round(share * barWidth))
  const percent = String(Math.min(100, Math.floor(share * 100))).padStart(3)
  return `${paint('█'.repeat(filled))}${'░'.repeat(barWidth - filled)} ${percent} % `
}

function grouped(value: number): string {
  return value.toLocaleString('en-US')
}
