/**
 * The `webhook-id` of an event: the same on every attempt, to every webhook and after every crash (W2),
 * and another in a database that was adopted by another environment (W7).
 */
export function messageId(installationId: string, offset: number): string {
  return `evt_${installationId.replaceAll('-', '')}_${offset}`
}
