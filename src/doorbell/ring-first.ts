import type { Ports } from '../ports.ts'
import { ringDoorbell } from './ring-doorbell.ts'

/** Where to ring, as the settings say it. */
export interface DoorbellTarget {
  url: string | null
  secret: string | null
}

/**
 * Rings the forwarder after a publish, once it has committed. Only where there is no doorbell, or when it gives no
 * good answer, which is logged, does `otherwise` run. Rejects only as that does.
 */
export function ringFirst<Info extends { streamId: number }, Result>(
  { url, secret }: DoorbellTarget,
  ports: Pick<Ports, 'clock' | 'fetch' | 'log'>,
  otherwise: (info: Info) => Promise<Result>,
): (info: Info) => Promise<Result | undefined> {
  if (url === null || secret === null) return otherwise
  return async (info) => {
    try {
      const { status } = await ringDoorbell({ url, secret, ports, ring: { streamIds: [info.streamId] } })
      if (status === 202) return undefined
      ports.log.warn({ status }, 'the doorbell was rung in vain')
    } catch (error) {
      ports.log.warn({ err: error }, 'the doorbell was rung in vain')
    }
    return otherwise(info)
  }
}
