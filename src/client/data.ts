import { jsonTextOf } from '../json/json-text-of.ts'
import { assertJsonText } from '../json/scan.ts'
import { arraySlices, objectSlices } from '../json/slices.ts'
import type { Answer } from './answer-error.ts'
import { jsonOf } from './request.ts'

/** Either `data`, or `dataText` to have the JSON kept byte for byte. */
export type DataInput = { data: unknown; dataText?: never } | { data?: never; dataText: string }

/**
 * An object as the text of a request, without what is undefined.
 *
 * @param at what stands before the names of fields in errors, such as `[0].`
 * @throws INVALID_INPUT naming the field that has no JSON form, such as a BigInt
 */
export function bodyOf(input: object, at = ''): string {
  // what is none, in spite of its type, is for the server to name
  if (typeof input !== 'object' || input === null) return jsonTextOf(input, at === '' ? 'body' : at)
  return `{${membersOf(input, at).join(',')}}`
}

/**
 * The same with data; `dataText` goes in as it is.
 *
 * @throws INVALID_INPUT, INVALID_JSON, JSON_TOO_DEEP
 */
export function bodyWithData({ data, dataText: given, ...rest }: DataInput & object, at = ''): string {
  const text = dataText({ data, dataText: given }, at)
  return `{${[...membersOf(rest, at), `"data":${text}`].join(',')}}`
}

function membersOf(input: object, at: string): string[] {
  return Object.entries(input)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${JSON.stringify(name)}:${jsonTextOf(value, `${at}${name}`)}`)
}

/**
 * The data as text; `dataText` as it is.
 *
 * @throws INVALID_INPUT, INVALID_JSON, JSON_TOO_DEEP
 */
export function dataText(
  { data, dataText: given }: { data?: unknown; dataText?: string },
  at: string,
): string {
  if (given === undefined) return jsonTextOf(data, `${at}data`)
  // unchecked, a text such as `1,"key":"x"` would become members of the object around it
  assertJsonText(given, `${at}data`)
  return given
}

/** A list in an answer, each with its data also as the text that was sent. */
export function listWithData<Item>(answer: Answer, member: string): (Item & { dataText: string })[] {
  const items = jsonOf<Record<string, Item[]>>(answer)[member] ?? []
  const texts = arraySlices(objectSlices(answer.text, 'body').get(member) ?? '[]')
  return items.map((item, index) => ({
    ...item,
    dataText: objectSlices(texts[index] ?? '{}', member).get('data') ?? 'null',
  }))
}
