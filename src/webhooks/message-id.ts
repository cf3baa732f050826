/**
 * Makes the `webhook-id` of an event from its offset: the same on every attempt, to every webhook and after every crash (W2),
 * and another in a database that was adopted by another environment (W7).
 */
export function messageIds(installationId: string): (offset: number) => string {
  const prefix = `evt_${installationId.replaceAll('-', '')}_`
  return (offset) => prefix + offset
}
