import { invalidInput } from '../errors/millrace-error.ts'
import { assertJsonText } from '../json/scan.ts'
import { arraySlices, objectSlices } from '../json/slices.ts'
import type { Answer } from './answer-error.ts'
import { jsonOf } from './request.ts'

/** Either `data`, or `dataText` to have the JSON kept byte for byte. */
export type DataInput = { data: unknown; dataText?: never } | { data?: never; dataText: string }

/**
 * An object with data as the text of a request; `dataText` goes in as it is.
 *
 * @param at what stands before the names of fields in errors, such as `[0].`
 * @throws INVALID_INPUT, INVALID_JSON, JSON_TOO_DEEP
 */
export function bodyWithData({ data, dataText, ...rest }: DataInput & object, at = ''): string {
  const text = dataText ?? (JSON.stringify(data) as string | undefined)
  if (text === undefined) throw invalidInput(`${at}data`, 'has no JSON form')
  if (dataText !== undefined) assertJsonText(text, `${at}data`)
  const members = JSON.stringify(rest).slice(1, -1)
  return `{${members}${members === '' ? '' : ','}"data":${text}}`
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
