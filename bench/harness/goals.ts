/** A row of the table: what is to be reached, in one place. */
export interface Goal {
  row: string
  what: string
  case: string
  metric: string
  /** Millrace's figure divided by the best one of these; null: the figure itself. */
  against: string[] | null
  bound: { atLeast: number } | { atMost: number }
}

const jobQueues = ['graphile-worker', 'pg-boss']

/** In the order of the table. */
export const goals: readonly Goal[] = [
  one('P1', 'publish one event, 16 clients, wakes on, one listener', 'publish-one', ['bare'], 0.9),
  one('P1', 'as above, `send`', 'publish-one', ['pg-boss'], 5),
  one('P1', 'as above, append', 'publish-one', ['emmett'], 1),
  one('P2', 'publish 1,000 at once', 'publish-many', ['bare'], 0.8),
  one('P2', 'as above, `insert` and `addJobs`', 'publish-many', jobQueues, 5),
  one('P3', 'read pages of 1,000, one consumer', 'read-1', ['bare'], 0.8),
  one('P3', 'as above', 'read-1', ['emmett'], 1),
  one('P3', 'read pages of 1,000, ten consumers', 'read-10', ['bare'], 0.8),
  one('P3', 'as above', 'read-10', ['emmett'], 1),
  one('P4', 'deliver to a local receiver, 1 webhook', 'deliver-1', ['bare'], 0.8),
  one('P4', 'deliver to a local receiver, 50 webhooks', 'deliver-50', ['bare'], 0.8),
  {
    row: 'P5',
    what: 'publish to receipt at 100 events/s, p50',
    case: 'latency',
    metric: 'p50',
    against: ['bare'],
    bound: { atMost: 1.5 },
  },
  figure('P5', 'publish to receipt at 100 events/s, p99', 'latency', 'p99', 25),
  figure('P6', 'SQL statements per delivered event, 1 webhook', 'deliver-1', 'statements', 0.05),
  figure('P6', 'SQL statements per delivered event, 50 webhooks', 'deliver-50', 'statements', 0.05),
  one('P7', 'send × 1,000, then work with 10 handlers', 'work-batched', jobQueues, 1.5, 'both'),
  one('P7', 'as above, the work alone', 'work-batched', jobQueues, 1.5, 'work'),
  one('P8', 'claim one, ack one, 10 workers', 'work-single', jobQueues, 2),
  one('P9', 'claim at 1,000,000 waiting', 'claim-depth', ['1,000 waiting'], 0.8),
  one('P10', 'one event to 1,000 webhooks', 'fan-out', ['50 webhooks'], 0.8),
  figure('P11', 'edge bundle, minified and gzipped (KB)', 'bundle', 'size', 130),
  figure('P12', 'memory of a forwarder with 10,000 idle webhooks (MB)', 'memory-idle', 'rss', 150),
  figure('P12', 'memory of a forwarder at full load (MB)', 'memory-load', 'rss', 300),
]

function one(
  row: string,
  what: string,
  inCase: string,
  against: string[],
  atLeast: number,
  metric = 'rate',
): Goal {
  return { row, what, case: inCase, metric, against, bound: { atLeast } }
}

function figure(row: string, what: string, inCase: string, metric: string, atMost: number): Goal {
  return { row, what, case: inCase, metric, against: null, bound: { atMost } }
}
