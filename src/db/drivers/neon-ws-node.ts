import { WebSocket } from 'ws'
import type { Db } from '../port.ts'
import { createNeonWsDb, type NeonWsOptions } from './neon-ws.ts'

/**
 * As {@link createNeonWsDb}, with the WebSocket of `ws`: Node has one of its own from 22 on only, and
 * none that can ping, by which a half-open LISTEN session is noticed within 20 s.
 *
 * @throws INVALID_SETTING
 */
export function createNodeNeonWsDb(options: Omit<NeonWsOptions, 'webSocket'>): Db {
  return createNeonWsDb({ ...options, webSocket: WebSocket })
}
