/** A JSON Schema (2020-12), as far as the API needs it. */
export interface Schema {
  $ref?: string
  type?: string | string[]
  enum?: readonly (string | null)[]
  format?: string
  description?: string
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  items?: Schema
  oneOf?: Schema[]
}

export const text: Schema = { type: 'string' }
export const whole: Schema = { type: 'integer' }
export const yes: Schema = { type: 'boolean' }
export const time: Schema = { type: 'string', format: 'date-time' }
/** Any JSON. */
export const any: Schema = {}
export const texts: Schema = { type: 'object', additionalProperties: text }

/** The same, or null. */
export function orNull(schema: Schema): Schema {
  if (typeof schema.type !== 'string') return { oneOf: [schema, { type: 'null' }] }
  return {
    ...schema,
    type: [schema.type, 'null'],
    ...(schema.enum && { enum: [...schema.enum, null] }),
  }
}

export function oneOf(...values: string[]): Schema {
  return { type: 'string', enum: values }
}

export function list(items: Schema): Schema {
  return { type: 'array', items }
}

/** An object; a name that ends with `?` may be absent. */
export function object(members: Record<string, Schema>): Schema {
  const entries = Object.entries(members)
  return {
    type: 'object',
    properties: Object.fromEntries(entries.map(([name, schema]) => [name.replace(/\?$/, ''), schema])),
    required: entries.flatMap(([name]) => (name.endsWith('?') ? [] : [name])),
  }
}

/** A body: the server refuses what it does not know. */
export function body(members: Record<string, Schema>): Schema {
  return { ...object(members), additionalProperties: false }
}

/** A schema of the document's components. */
export function named(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` }
}
