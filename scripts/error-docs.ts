// Makes docs/errors.md from the table of codes: `npm run docs:errors` writes it, a test holds the two together.
import { writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { errorCodes } from '../src/errors/codes.ts'

/** The text of docs/errors.md. */
export function errorDocs(): string {
  const rows = Object.entries(errorCodes).map(
    ([code, { status, retryable, title }]) =>
      `| \`${code}\` | ${status} | ${retryable ? 'yes' : 'no'} | ${title} |`,
  )
  return `# Error codes

Every error carries one of these codes, which do not change: branch on them, never on a message. Over HTTP an
error is a problem document (\`application/problem+json\`, RFC 9457) with \`type\`, \`title\`, \`status\`, \`detail\`,
\`code\` and, where one field is at fault, \`field\`. In the library it is a \`MillraceError\`; \`isMillraceError\`
tells. "Again" says whether the same call may succeed later without a change.

| code | status | again | meaning |
| --- | --- | --- | --- |
${rows.join('\n')}
`
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  writeFileSync(new URL('../docs/errors.md', import.meta.url), errorDocs())
}
