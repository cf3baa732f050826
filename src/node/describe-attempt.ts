import type { AttemptReport } from '../webhooks/deliver-event.ts'

/** One line about an attempt, for a person who watches. */
export function describeAttempt({ webhook, event, attempt, result, outcome }: AttemptReport): string {
  const what = `${webhook.stream} #${event.offset} ${event.type}`
  const took = `${Math.round(result.durationMs)} ms`
  const answer =
    result.kind === 'answer' ? `${result.status} in ${took}` : `${result.message} (after ${took})`
  return `${marks[outcome.kind]} ${what} → ${webhook.url} ${answer}${sequel(attempt, outcome)}`
}

const marks = { delivered: '✓', retry: '↻', dead: '✗', disable: '✗', abandoned: '–' } as const

function sequel(attempt: number, outcome: AttemptReport['outcome']): string {
  switch (outcome.kind) {
    case 'delivered':
      return attempt > 1 ? ` (attempt ${attempt})` : ''
    case 'retry':
      return `; attempt ${attempt + 1} in ${Math.ceil(outcome.delayMs / 1000)} s`
    case 'dead':
      return `; given up after ${attempt} attempts, kept as a dead letter`
    case 'disable':
      return `; the webhook is disabled, its events wait`
    case 'abandoned':
      return ': broken off to shut down, to be sent again'
  }
}
