import { scopeOf } from '../access.ts'
import { components } from './components.ts'
import { operations, type Operation } from './operations.ts'
import { named, text, whole, type Schema } from './shapes.ts'

/** An OpenAPI 3.1 document, as far as its parts are looked at. */
export interface OpenApi {
  openapi: string
  info: { title: string; version: string; description: string }
  paths: Record<string, Record<string, OpenApiOperation>>
  components: { schemas: Record<string, Schema>; securitySchemes: object }
}

/** An operation of the document. */
export interface OpenApiOperation {
  operationId: string
  summary: string
  description?: string
  tags: string[]
  parameters?: object[]
  requestBody?: { required: boolean; content: Record<string, { schema: Schema }> }
  responses: Record<string, { description: string; content?: Record<string, { schema: Schema }> }>
  security: object[]
}

/** The API as an OpenAPI 3.1 document, made from the table of operations and that of the scopes. */
export function openApiDocument(version: string): OpenApi {
  const paths: OpenApi['paths'] = {}
  for (const [route, operation] of Object.entries(operations)) {
    const [method = '', path = ''] = route.split(' ')
    const address = path.replace(/:(\w+)/g, '{$1}')
    paths[address] = { ...paths[address], [method.toLowerCase()]: describe(method, path, operation) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Millrace',
      version,
      description:
        'Durable event streams, queues, schedules and locks in your own Postgres, delivered as signed webhooks.',
    },
    paths,
    components: {
      schemas: components,
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'The root key, or an API key.' },
      },
    },
  }
}

function describe(method: string, path: string, operation: Operation): OpenApiOperation {
  const closed = path.startsWith('/v1/') || path === '/metrics'
  const parameters = [...pathParameters(path), ...queryParameters(operation.query)]
  return {
    operationId: operationId(method, path),
    summary: operation.summary,
    ...(closed && { description: `Needs the scope \`${scopeOf(method, path)}\`.` }),
    tags: [path.split('/')[closed && path !== '/metrics' ? 2 : 0] || 'server'],
    ...(parameters.length > 0 && { parameters }),
    ...(operation.body && { requestBody: requestBody(operation, operation.body) }),
    responses: responses(operation),
    security: closed ? [{ key: [] }] : [],
  }
}

function operationId(method: string, path: string): string {
  const words = path.split('/').flatMap((part) => part.replace(':', 'by-').split(/[-.]/))
  return [method.toLowerCase(), ...words.filter((word) => word !== '' && word !== 'v1')]
    .map((word, index) => (index === 0 ? word : word[0]?.toUpperCase() + word.slice(1)))
    .join('')
}

function pathParameters(path: string): object[] {
  return Array.from(path.matchAll(/:(\w+)/g), ([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: name === 'offset' ? whole : text,
  }))
}

function queryParameters(query: Operation['query'] = {}): object[] {
  return Object.entries(query).map(([name, schema]) => ({
    name,
    in: 'query',
    required: name === 'through',
    schema,
  }))
}

function requestBody({ optional = false, media }: Operation, schema: Schema) {
  return {
    required: !optional,
    content: { 'application/json': { schema }, ...(media?.body && { [media.body]: { schema: text } }) },
  }
}

function responses({ answers, media }: Operation): OpenApiOperation['responses'] {
  const problem = {
    description: 'A problem',
    content: { 'application/problem+json': { schema: named('Problem') } },
  }
  const known = Object.entries(answers).map(([status, schema]) => [status, answer(schema, media?.answer)])
  return { ...Object.fromEntries(known), default: problem }
}

/** What is not JSON alone may be JSON too where a schema says more than text. */
function answer(schema: Schema | null, other: string | undefined) {
  if (schema === null) return { description: 'Done' }
  const json = other === undefined || schema !== text
  return {
    description: 'Done',
    content: { ...(json && { 'application/json': { schema } }), ...(other && { [other]: { schema: text } }) },
  }
}
