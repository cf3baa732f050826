import type { Hono } from 'hono'
import type { AppOptions } from './context.ts'
import { lockRoutes } from './locks.ts'
import { queueMessageRoutes } from './queue-messages.ts'
import { queueRoutes } from './queues.ts'
import { scheduleRoutes } from './schedules.ts'
import { topicRoutes } from './topics.ts'

/**
 * Queues, topics, locks and schedules over HTTP, for the app's option of the same name: what brings a
 * calendar along is not loaded where it is not asked for.
 */
export function workRoutes(app: Hono, options: AppOptions): void {
  queueRoutes(app, options)
  queueMessageRoutes(app, options)
  topicRoutes(app, options)
  lockRoutes(app, options)
  scheduleRoutes(app, options)
}
