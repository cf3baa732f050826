import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { topicOf } from '../../src/node-ts-bus/topic-name.ts'
import { sendMessages } from '../../src/queues/send-messages.ts'
import { bindQueue } from '../../src/queues/topics.ts'
import { crashSteps, EffectDone, WriteEffect } from './crash-messages.ts'
import { countMessages, openServer, type OpenedServer } from './support.ts'

const patience = { timeout: 60_000 }

let server: OpenedServer
let folder: string
const started: ChildProcess[] = []
beforeAll(async () => {
  server = await openServer()
  await server.pool.query('create table public.effects (step text)')
  folder = await mkdtemp(join(tmpdir(), 'millrace-bus-crash-'))
  await build({
    entryPoints: [fileURLToPath(new URL('crash-process.ts', import.meta.url))],
    outfile: join(folder, 'service.mjs'),
    bundle: true,
    platform: 'node',
    format: 'esm',
    external: ['pg-native'],
    banner: {
      js: `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)`,
    },
  })
})
afterAll(async () => {
  for (const child of started) child.kill('SIGKILL')
  await server.close()
  await rm(folder, { recursive: true })
})

function start(queue: string, step: string): ChildProcess {
  const child = spawn(process.execPath, [join(folder, 'service.mjs')], {
    env: { ...process.env, DATABASE_URL: server.url, QUEUE: queue, STEP: step },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  started.push(child)
  return child
}

describe('a process that dies while it handles a message in a transaction', () => {
  it.each(crashSteps)(
    'leaves exactly one row and one event: %s',
    async (step) => {
      const queue = `crash-${step.replaceAll(' ', '-')}`
      const audit = `audit-${queue}`
      const message = new WriteEffect(step)
      await bindQueue(server.db, { topic: topicOf(new EffectDone(step).$name), queue: audit })
      await sendMessages(server.db, queue, [{ dataText: JSON.stringify(message), type: message.$name }])

      const [, signal] = await once(start(queue, step), 'exit')
      expect(signal).toBe('SIGKILL')
      start(queue, 'none')
      await vi.waitFor(async () => expect(await countMessages(server.pool, queue)).toBe(0), patience)

      const { rows } = await server.pool.query('select step from public.effects where step = $1', [step])
      expect(rows).toEqual([{ step }])
      const { rows: events } = await server.pool.query(
        `select m.data->>'step' as step from millrace.messages m
          join millrace.queues q on q.id = m.queue_id where q.name = $1 and m.data->>'step' = $2`,
        [audit, step],
      )
      expect(events).toEqual([{ step }])
    },
    120_000,
  )
})
