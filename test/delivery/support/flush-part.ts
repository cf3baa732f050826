import type { LaneFlush } from '../../../src/webhooks/engine/flush-outcomes.ts'

/** What a lane wants written that has nothing to say but that it goes on, and whatever is changed of that. */
export function flushPart(webhookId: string, token: string, changes: Partial<LaneFlush> = {}): LaneFlush {
  return {
    webhookId,
    token,
    offset: 0,
    release: false,
    renew: true,
    fence: 1,
    saturated: false,
    succeeded: false,
    failed: false,
    disable: null,
    rows: [],
    promote: [],
    log: [],
    ...changes,
  }
}
