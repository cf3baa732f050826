import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openServer, type OpenedServer } from './support.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

let server: OpenedServer
let folder: string
beforeAll(async () => {
  server = await openServer()
  await server.pool.query('create table public.orders (number int); create table public.carts (number int)')
  folder = await mkdtemp(join(root, '.docs-'))
  const page = await readFile(join(root, 'docs/node-ts-bus.md'), 'utf8')
  for (const [, name, code] of page.matchAll(/^```ts\n\/\/ (\S+\.ts)\n([^]*?)^```$/gm)) {
    await writeFile(join(folder, name!), code!)
  }
})
afterAll(async () => {
  await server.close()
  await rm(folder, { recursive: true })
})

/** Runs a program of the page, as a project would that has Millrace installed, until it prints. */
async function firstLineOf(program: string): Promise<string> {
  const outfile = join(folder, `${program}.mjs`)
  const { exports } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
    exports: Record<string, { default: string }>
  }
  const source = (path: string): string => exports[path]!.default.replace('dist/', '').replace(/js$/, 'ts')
  await build({
    entryPoints: [join(folder, program)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    external: ['pg-native'],
    alias: {
      'millrace/node-postgres': join(root, source('./node-postgres')),
      'millrace/node-ts-bus': join(root, source('./node-ts-bus')),
    },
    banner: {
      js: `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)`,
    },
  })
  const child = spawn(process.execPath, [outfile], {
    env: { ...process.env, DATABASE_URL: server.url },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const [text] = await once(child.stdout, 'data')
    return String(text).trim()
  } finally {
    child.kill('SIGKILL')
  }
}

describe('the programs in docs/node-ts-bus.md', () => {
  it('receive what they send', async () => {
    expect(await firstLineOf('service.ts')).toBe('order 17')
  })

  it('handle an order exactly once', async () => {
    expect(await firstLineOf('exactly-once.ts')).toBe('placed 17')
    const { rows } = await server.pool.query(
      'select o.number from public.orders o join public.carts using (number)',
    )
    expect(rows).toEqual([{ number: 17 }])
  })
})
