import { readFileSync } from 'node:fs'

/** Sources and build lie at different depths below package.json, so it is looked for upwards. */
export function packageVersion(): string {
  for (let folder = new URL('..', import.meta.url); ; folder = new URL('..', folder)) {
    try {
      const text = readFileSync(new URL('package.json', folder), 'utf8')
      return (JSON.parse(text) as { version: string }).version
    } catch (error) {
      if (folder.pathname === '/' || new URL('..', folder).href === folder.href) throw error
    }
  }
}
