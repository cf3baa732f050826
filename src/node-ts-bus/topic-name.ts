/** Before the names of topics that carry messages of the bus, so that no other topic can be meant. */
export const topicPrefix = 'bus.'

/**
 * The topic that carries the messages of one `$name`. Names of topics have fewer characters than `$name`s:
 * all but letters, digits, `.`, `_` and `-` become `:` and two hexadecimal digits for each UTF-8 byte, so
 * that no two names share a topic: `@app/order-placed` goes to `bus.:40app:2forder-placed`.
 */
export function topicOf(messageName: string): string {
  return topicPrefix + messageName.replace(/[^A-Za-z0-9._-]/gu, escaped)
}

function escaped(character: string): string {
  const bytes = new TextEncoder().encode(character)
  return Array.from(bytes, (byte) => `:${byte.toString(16).padStart(2, '0')}`).join('')
}
