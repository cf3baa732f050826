import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, it, vi } from 'vitest'
import { createTestDatabase } from '../support/database.ts'

const root = join(import.meta.dirname, '../..')

/** The page's pieces of code as one module, on the sources that the package's entries are built from. */
async function programOf(page: string): Promise<string> {
  const { exports } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
    exports: Record<string, { default: string }>
  }
  const sourceOf = (entry: string): string =>
    join(root, exports[`.${entry}`]!.default.replace('./dist/', '').replace(/\.js$/, '.ts'))
  const code = Array.from(page.matchAll(/^```ts\n([^]*?)^```$/gm), ([, block]) => block).join('\n')
  const imports = /^import .*$/gm
  const heads = Array.from(code.matchAll(imports), ([line]) =>
    line.replace(/'millrace(\/?[^']*)'/, (_, entry: string) => `'${sourceOf(entry)}'`),
  )
  return `${heads.join('\n')}\nexport async function run() {\n${code.replaceAll(imports, '')}\n}\n`
}

it('the program on the page about the library runs, and prints what it says', async () => {
  const database = await createTestDatabase()
  const folder = await mkdtemp(join(tmpdir(), 'millrace-page-'))
  const printed: unknown[][] = []
  vi.stubEnv('DATABASE_URL', database.url)
  const log = vi.spyOn(console, 'log').mockImplementation((...words) => void printed.push(words))
  try {
    const file = join(folder, 'program.ts')
    await writeFile(file, await programOf(await readFile(join(root, 'docs/library.md'), 'utf8')))
    const program = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as { run(): Promise<void> }
    await program.run()
  } finally {
    log.mockRestore()
    vi.unstubAllEnvs()
    await rm(folder, { recursive: true })
    await database.drop()
  }
  expect(printed).toEqual([
    [{ total: 42 }, expect.any(Number)],
    ['order.placed', { total: 42 }],
    [true],
    [expect.any(Number), expect.any(Number)],
    ['open'],
  ])
})
