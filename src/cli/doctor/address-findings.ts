import type { Settings } from '../../settings.ts'
import type { Finding } from './finding.ts'

/** Where poolers usually listen: PgBouncer, and Supabase's. */
const poolerPorts = new Set(['6432', '6543'])

/** What can be told from the database's address: a pooler, and a database that sleeps. */
export function addressFindings({ databaseUrl, directUrl }: Settings): Finding[] {
  if (databaseUrl === null) return []
  const { hostname } = new URL(databaseUrl)
  const findings: Finding[] = [poolerFinding(databaseUrl, directUrl)]
  if (hostname.endsWith('.neon.tech')) {
    findings.push({
      level: 'note',
      topic: 'sleep',
      text: 'Neon suspends an idle database after 5 minutes and ends its LISTEN; any query keeps it awake',
    })
  }
  return findings
}

function poolerFinding(databaseUrl: string, directUrl: string | null): Finding {
  const topic = 'pooler'
  if (!looksPooled(databaseUrl)) return { level: 'ok', topic, text: 'the address looks like a direct one' }
  if (directUrl !== null && !looksPooled(directUrl)) {
    return { level: 'ok', topic, text: 'DATABASE_URL is a pooler, DATABASE_URL_UNPOOLED a direct address' }
  }
  if (new URL(databaseUrl).hostname.endsWith('.neon.tech')) {
    return {
      level: 'ok',
      topic,
      text: "DATABASE_URL is Neon's pooler; LISTEN and migrations take its direct host",
    }
  }
  return {
    level: 'warn',
    topic,
    text: 'DATABASE_URL looks like a pooler: LISTEN and migrations need DATABASE_URL_UNPOOLED',
  }
}

/** By the usual names and ports only; whether wakes come through is found out by trying. */
export function looksPooled(url: string): boolean {
  const { hostname, port } = new URL(url)
  return /-pooler\.|(^|[.-])(pooler|pgbouncer)([.-]|$)/.test(hostname) || poolerPorts.has(port)
}
