import { openApiDocument } from '../../../src/http/openapi/document.ts'
import type { Schema } from '../../../src/http/openapi/shapes.ts'
import type { HttpTarget } from './target.ts'

const document = openApiDocument('0.0.0')

const patterns = Object.entries(document.paths).map(([path, methods]) => ({
  pattern: new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`),
  methods,
}))

/** A target whose every answer is checked against the OpenAPI document before the test sees it. */
export function conforming(target: HttpTarget): HttpTarget {
  return {
    ...target,
    async fetch(request) {
      // the answer of HEAD has no body, and a stream none that ends
      const { method, url } = request
      const response = await target.fetch(request)
      const type = response.headers.get('content-type') ?? ''
      if (method === 'HEAD' || type.startsWith('text/event-stream')) return response
      const text = await response.clone().text()
      const problems = problemsOf({
        method,
        path: new URL(url).pathname,
        status: response.status,
        type,
        text,
      })
      if (problems.length > 0) {
        throw new Error(
          `${method} ${url} → ${response.status} departs from openapi.json: ${problems.join('; ')}\n${text}`,
        )
      }
      return response
    },
  }
}

interface Answer {
  method: string
  path: string
  status: number
  type: string
  text: string
}

/** In what an answer departs from the document; nothing: the list is empty. */
export function problemsOf({ method, path, status, type, text }: Answer): string[] {
  const operation = patterns.find(({ pattern }) => pattern.test(path))?.methods[method.toLowerCase()]
  if (operation === undefined)
    return status >= 400 ? problemAnswer(type, text) : ['there is no such operation']
  const described = operation.responses[String(status)]
  if (described === undefined)
    return status >= 400 ? problemAnswer(type, text) : [`${status} is not among its answers`]
  if (described.content === undefined) return text === '' ? [] : ['there is a body']
  const media = type.split(';')[0] ?? ''
  const schema = described.content[media]?.schema
  if (schema === undefined) return [`${media} is not among its media types`]
  return media === 'application/json' ? departures(JSON.parse(text), schema, 'body') : []
}

function problemAnswer(type: string, text: string): string[] {
  if (type !== 'application/problem+json') return [`an error is ${type}`]
  return departures(JSON.parse(text), { $ref: '#/components/schemas/Problem' }, 'problem')
}

/** What of a value a schema does not allow. What is not described is not allowed, unless it says so. */
export function departures(value: unknown, schema: Schema, at: string): string[] {
  if (schema.$ref !== undefined) return departures(value, resolve(schema.$ref), at)
  if (schema.oneOf !== undefined) {
    const each = schema.oneOf.map((one) => departures(value, one, at))
    return each.some((found) => found.length === 0) ? [] : (each[0] ?? [])
  }
  if (schema.type !== undefined && ![schema.type].flat().includes(typeOf(value, schema))) {
    return [`${at} is ${JSON.stringify(value)?.slice(0, 60)}, not ${String(schema.type)}`]
  }
  if (schema.enum !== undefined && !schema.enum.includes(value as string))
    return [`${at} is ${String(value)}`]
  if (schema.format === 'date-time' && typeof value === 'string' && !/^\d{4}-\d\d-\d\dT.*Z$/.test(value))
    return [`${at} is ${value}, no time`]
  if (Array.isArray(value))
    return value.flatMap((item, index) => departures(item, schema.items ?? {}, `${at}[${index}]`))
  return typeof value === 'object' && value !== null ? members(value, schema, at) : []
}

function members(value: object, schema: Schema, at: string): string[] {
  const { properties, required = [], additionalProperties = properties === undefined } = schema
  const missing = required
    .filter((name) => !Object.hasOwn(value, name))
    .map((name) => `${at}.${name} is missing`)
  const found = Object.entries(value).flatMap(([name, member]) => {
    const described = properties?.[name]
    if (described !== undefined) return departures(member, described, `${at}.${name}`)
    if (typeof additionalProperties === 'object')
      return departures(member, additionalProperties, `${at}.${name}`)
    return additionalProperties ? [] : [`${at}.${name} is not described`]
  })
  return [...missing, ...found]
}

function typeOf(value: unknown, schema: Schema): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (Number.isInteger(value) && [schema.type].flat().includes('integer')) return 'integer'
  return typeof value
}

function resolve(reference: string): Schema {
  const schema = document.components.schemas[reference.replace('#/components/schemas/', '')]
  if (schema === undefined) throw new Error(`${reference} leads nowhere`)
  return schema
}
