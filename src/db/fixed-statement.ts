import { SQL, type QueryWithTypings } from 'drizzle-orm'
import type { Executor } from './port.ts'
import { quotedName } from './quoted-name.ts'

/** A value of a statement: everything goes as text or number, and the statement casts. */
export type Value = string | number | boolean | null

/** A statement that is text already, with `$1`, `$2` … for its values. */
class TextStatement extends SQL {
  readonly #query: QueryWithTypings
  constructor(text: string, values: readonly Value[]) {
    super([])
    this.#query = { sql: text, params: [...values] }
  }
  override toQuery(): QueryWithTypings {
    return this.#query
  }
}

/** Makes the statement, with its values, for whom it is run on. */
export type FixedStatement = (on: Executor, values: readonly Value[]) => SQL

/** By text; there are a few for each schema. */
const names = new Map<string, string>()

/** The name under which a session may keep a fixed statement prepared, or undefined for any other text. */
export function nameOfFixed(text: string): string | undefined {
  return names.get(text)
}

/**
 * A statement of which nothing but the schema and the values changes: its text is made once a schema. Put together
 * by Drizzle for every call it takes 40 to 80 µs more, a third of what a publish costs its process.
 *
 * @param text makes the text; `named('append')` is the qualified and quoted name of one of ours
 * @returns makes the statement for {@link runQuery}
 */
export function fixedStatement(text: (named: (name: string) => string) => string): FixedStatement {
  const texts = new Map<string, string>()
  return ({ schema }, values) => {
    let known = texts.get(schema)
    if (known === undefined) {
      known = text((name) => `${quotedName(schema)}.${quotedName(name)}`)
      texts.set(schema, known)
      if (!names.has(known)) names.set(known, `millrace_${names.size + 1}`)
    }
    return new TextStatement(known, values)
  }
}
