// Writes .oxlintrc.json: the general rules, and the arrows of who may import whom, made from one table.
// Run `node scripts/lint-rules.mjs` after a change here; `npm run lint` fails when the file is behind.
import { readFileSync, writeFileSync } from 'node:fs'

/** Below every room that works on the database. */
const ground = ['errors', 'json', 'schema', 'db', 'ports']
/** What the outer rooms serve. */
const inner = [...ground, 'keys', 'streams', 'queues', 'locks', 'schedules', 'webhooks']

/** Every room, and the rooms below it that it may import. What is not named is forbidden. */
const mayImport = {
  errors: [],
  json: ['errors'],
  schema: ['errors'],
  db: ['errors', 'schema', 'ports'],
  streams: ground,
  queues: ground,
  locks: ['errors', 'schema', 'db', 'ports'],
  keys: ['errors', 'schema', 'db'],
  schedules: [...ground, 'streams', 'queues', 'locks'],
  webhooks: [...ground, 'streams'],
  wakes: ['errors', 'db', 'ports'],
  doorbell: ['errors', 'ports'],
  http: inner,
  'node-ts-bus': [...ground, 'queues', 'wakes'],
  client: ['errors', 'json'],
  embedded: ['errors', 'ports'],
  gateway: ['errors', 'ports'],
  // wiring for platforms without processes: everything but what only Node has
  edge: [...inner, 'http', 'wakes', 'doorbell'],
  // wiring for Node, used by workers/ and the command line
  node: [...inner, 'http', 'wakes', 'doorbell', 'embedded', 'gateway', 'client', 'edge'],
  cli: [...inner, 'http', 'wakes', 'doorbell', 'embedded', 'gateway', 'client', 'node'],
}
/** Rooms that wire: they may import a driver. */
const wiring = new Set(['db', 'edge', 'node', 'cli'])
/** Files that must build without a database: for receivers of webhooks, in a browser too. */
const withoutDatabase = ['sign', 'verify']
const rooms = Object.keys(mayImport)
/** Where modules of Node are at home. */
const nodeFiles = [
  'src/db/drivers/**',
  'src/**/node-*.ts',
  'src/cli/**',
  'src/embedded/**',
  'src/gateway/**',
  'src/node/**',
  'src/system-ports.ts',
]

function restrict(patterns) {
  return { 'eslint/no-restricted-imports': ['error', { patterns }] }
}

const noNode = {
  regex: '^node:',
  message: 'node: modules only in node drivers, node senders, cli and workers',
}
const noDrivers = { regex: 'db/drivers/', message: 'only workers and cli import a driver' }
const noWiring = { regex: '(^|/)workers/', message: 'workers and cli wire: nothing imports them' }

function arrows(room) {
  const forbidden = rooms.filter((other) => other !== room && !mayImport[room].includes(other))
  return [
    {
      regex: `\\.\\./(${forbidden.join('|')})/`,
      message: `src/${room} may import ${mayImport[room].join(', ') || 'nothing'}`,
    },
    ...(wiring.has(room) ? [] : [noDrivers]),
    noWiring,
  ]
}

const config = {
  $schema: './node_modules/oxlint/configuration_schema.json',
  plugins: ['typescript', 'unicorn', 'oxc', 'import', 'vitest'],
  categories: { correctness: 'error', suspicious: 'error', perf: 'error' },
  rules: {
    'typescript/no-explicit-any': 'error',
    'typescript/consistent-type-imports': 'error',
    'eslint/max-lines': ['error', { max: 400 }],
    'eslint/no-console': 'error',
    // helpers that assert are named expect…; the name of a suite bound to several targets is a variable
    'vitest/valid-title': ['error', { ignoreTypeOfDescribeName: true }],
    'eslint/no-await-in-loop': 'off',
    'eslint/no-shadow': 'off',
    'eslint/no-underscore-dangle': 'off',
    'import/no-cycle': 'error',
    'import/no-named-as-default-member': 'off',
    'import/no-unassigned-import': 'off',
    'unicorn/no-array-sort': 'off',
    'unicorn/prefer-add-event-listener': 'off',
    'unicorn/require-post-message-target-origin': 'off',
    'unicorn/consistent-function-scoping': 'off',
    // a copy of a set that its own members change while it is walked through is not useless
    'unicorn/no-useless-spread': 'off',
    'oxc/no-map-spread': 'off',
    'eslint/no-unmodified-loop-condition': 'off',
    // contract suites expect by capability, property tests by case
    'vitest/no-conditional-expect': 'off',
    'vitest/require-to-throw-message': 'off',
    'vitest/valid-expect': ['error', { maxArgs: 2 }],
    'vitest/expect-expect': [
      'error',
      {
        assertFunctionNames: [
          'expect',
          'expect*',
          'assert*',
          'fc.assert',
          '*.verify',
          '*.close',
          '*.waitFor*',
          '*.until',
          'waitFor*',
        ],
      },
    ],
  },
  overrides: [
    ...rooms.map((room) => ({
      files: [`**/src/${room}/**/*.ts`],
      rules: restrict([...arrows(room), noNode]),
    })),
    {
      files: withoutDatabase.map((name) => `**/src/webhooks/${name}.ts`),
      rules: restrict([
        {
          regex: '\\.\\./(json|schema|db|streams|queues|locks|schedules|wakes|http)/',
          message: 'sign and verify build without drizzle',
        },
        noNode,
      ]),
    },
    ...rooms
      .map((room) => ({
        files: nodeFiles
          .filter((file) => file.startsWith(`src/${room}/`) || file.startsWith('src/**'))
          .map((file) => file.replace('src/**', `src/${room}/**`)),
        rules: restrict(arrows(room)),
      }))
      .filter(({ files }) => files.length > 0),
    { files: ['test/**', 'bench/**', 'examples/**'], rules: { 'eslint/max-lines': ['error', { max: 600 }] } },
    {
      files: [
        'scripts/**',
        'src/cli/**',
        'src/node/**',
        'workers/**',
        'test/support/global-setup.ts',
        'bench/**',
        'examples/**',
      ],
      rules: { 'eslint/no-console': 'off' },
    },
  ],
  ignorePatterns: ['dist/**', 'test/fixtures/**', 'drizzle/**'],
}

const text = `${JSON.stringify(config, null, 2)}\n`
const file = new URL('../.oxlintrc.json', import.meta.url)
if (process.argv.includes('--check')) {
  if (readFileSync(file, 'utf8') !== text) {
    console.error('.oxlintrc.json is behind scripts/lint-rules.mjs: run `node scripts/lint-rules.mjs`')
    process.exit(1)
  }
} else {
  writeFileSync(file, text)
}
