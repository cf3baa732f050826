import { failureHeader } from './failure.ts'

/** The attributes of a bus message, as every version of the bus has them. */
export interface BusAttributes {
  correlationId?: string
  attributes: AttributeMap
  stickyAttributes: AttributeMap
}

/** Undefined values do not travel. */
export type AttributeMap = Record<string, string | number | boolean | undefined>

/**
 * The headers that carry a message's attributes: `correlationId` as it is, `attributes` and
 * `stickyAttributes` as JSON; what is empty has none.
 */
export function encodeAttributes(from: Partial<BusAttributes> | undefined): Record<string, string> | null {
  const headers: Record<string, string> = {}
  if (from?.correlationId !== undefined) headers.correlationId = from.correlationId
  for (const name of ['attributes', 'stickyAttributes'] as const) {
    const map = from?.[name] ?? {}
    if (Object.keys(map).length > 0) headers[name] = JSON.stringify(map)
  }
  return Object.keys(headers).length > 0 ? headers : null
}

/** The attributes that headers carry. Headers that no bus has set, of a publisher outside, are attributes. */
export function decodeAttributes(headers: Record<string, string> | null): BusAttributes {
  const { correlationId, attributes, stickyAttributes, [failureHeader]: _, ...others } = headers ?? {}
  return {
    ...(correlationId === undefined ? {} : { correlationId }),
    attributes: { ...others, ...decodeMap('attributes', attributes) },
    stickyAttributes: decodeMap('stickyAttributes', stickyAttributes),
  }
}

/** A header of that name with something else in it came from outside, and is an attribute like any other. */
function decodeMap(name: string, text: string | undefined): AttributeMap {
  if (text === undefined) return {}
  try {
    const map: unknown = JSON.parse(text)
    if (typeof map === 'object' && map !== null && !Array.isArray(map)) return map as AttributeMap
  } catch {
    // not JSON
  }
  return { [name]: text }
}
