import type { OpenApi, OpenApiOperation } from './document.ts'
import type { Schema } from './shapes.ts'

/** The document as one page of HTML: no scripts, nothing from elsewhere. */
export function docsPage(document: OpenApi): string {
  const { info, paths, components } = document
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )
  const tags = [...new Set(operations.flatMap(({ operation }) => operation.tags))]
  const sections = tags.map((tag) => {
    const own = operations.filter(({ operation }) => operation.tags.includes(tag))
    return `<section><h2 id="${tag}">${tag}</h2>${own.map(operationHtml).join('')}</section>`
  })
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) => `<h3 id="schema-${name}">${name}</h3><pre>${escaped(shapeOf(schema, 0))}</pre>`,
  )
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${info.title} API</title><style>${style}</style></head>
<body><h1>${info.title} <small>${escaped(info.version)}</small></h1><p>${escaped(info.description)}</p>
<p><a href="openapi.json">openapi.json</a> · ${tags.map((tag) => `<a href="#${tag}">${tag}</a>`).join(' · ')}</p>
${sections.join('\n')}
<section><h2 id="schemas">Schemas</h2>${schemas.join('')}</section></body></html>
`
}

function operationHtml(entry: { path: string; method: string; operation: OpenApiOperation }): string {
  const { path, method, operation } = entry
  const query = (operation.parameters ?? []) as { name: string; in: string }[]
  const names = query.filter((parameter) => parameter.in === 'query').map(({ name }) => `${name}=`)
  const taken = operation.requestBody?.content['application/json']?.schema
  const answers = Object.entries(operation.responses).flatMap(([status, { content }]) => {
    if (status === 'default') return []
    const [schema] = Object.values(content ?? {}).map((one) => one.schema)
    return [`${status}${schema === undefined ? '' : ` ${shapeOf(schema, 0)}`}`]
  })
  const lines = [...(taken === undefined ? [] : [shapeOf(taken, 0)]), ...answers.map((line) => `→ ${line}`)]
  return `<article id="${operation.operationId}"><h3><b>${method.toUpperCase()}</b> <code>${escaped(path)}${
    names.length === 0 ? '' : `?${names.join('&amp;')}`
  }</code></h3><p>${escaped([operation.summary, operation.description].filter(Boolean).join('. '))}</p><pre>${escaped(
    lines.join('\n'),
  )}</pre></article>`
}

/** A schema as a person would write it down. */
function shapeOf(schema: Schema, depth: number): string {
  if (schema.$ref !== undefined) return schema.$ref.replace(/.*\//, '')
  if (schema.oneOf !== undefined) return schema.oneOf.map((one) => shapeOf(one, depth)).join(' | ')
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (schema.items !== undefined) return `[${shapeOf(schema.items, depth)}, …]`
  if (schema.properties !== undefined) {
    const indent = '  '.repeat(depth + 1)
    const members = Object.entries(schema.properties).map(
      ([name, member]) =>
        `\n${indent}${name}${schema.required?.includes(name) === true ? '' : '?'}: ${shapeOf(member, depth + 1)}`,
    )
    return members.length === 0 ? '{}' : `{${members.join('')}\n${'  '.repeat(depth)}}`
  }
  return [schema.type ?? 'any JSON'].flat().join(' | ')
}

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
}

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}
pre{overflow:auto;padding:.75rem;border-radius:.4rem;background:#8881}article{margin:1.5rem 0}h3{margin:.2rem 0}
small{opacity:.6}b{color:#06c}`
