/**
 * Whether a request changes what a forwarder works by, beside publishes: webhooks and schedules. What workers of
 * queues do concerns it only for its sweeps, which are never urgent.
 */
export function isWorthRinging(request: Request): boolean {
  if (request.method === 'GET' || request.method === 'HEAD') return false
  return /^\/v1\/(?:webhooks|schedules)(?:\/|$)/.test(new URL(request.url).pathname)
}
