import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, it, vi } from 'vitest'
import { putSchedule } from '../../src/schedules/put-schedule.ts'
import { getSchedule } from '../../src/schedules/read-schedules.ts'
import { describeOnEveryDriver } from '../contract/drivers.ts'
import { dueTimes, intoStream, tick } from './support.ts'

const script = fileURLToPath(new URL('scheduler-process.ts', import.meta.url))
const everyMs = 250
/** Hours ahead, right, and hours behind. */
const skews = [3 * 3_600_000, 0, -3 * 3_600_000]
const kills = 6
/** Nothing that the distance of the boundaries is a multiple of: so the kills fall on every part of a tick. */
const lookMs = 37

async function start(url: string, skewMs: number): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['--import', 'tsx', script], {
    // one host name for all: nothing may be told apart by it
    env: { ...process.env, DATABASE_URL: url, SKEW_MS: String(skewMs), HOSTNAME: 'same-host' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(child.stdout!, 'data')
  return child
}

async function kill(child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}

describeOnEveryDriver(
  'three schedulers with one host name, one of them killed again and again',
  (given, binding) => {
    // they are processes of node-postgres, whichever driver asks
    it.runIf(binding.name === 'node-postgres')(
      'fire each boundary once, whatever their clocks say (Q5, Q6)',
      async () => {
        const { db, url } = given()
        const children = await Promise.all(skews.map((skewMs) => start(url, skewMs)))
        try {
          await putSchedule(db, 'beat', intoStream('beat', { everyMs, catchUp: 'all' }))
          const first = (await getSchedule(db, 'beat'))!.nextAt!.getTime()
          for (let turn = 0; turn < kills; turn++) {
            const victim = turn % children.length
            const before = (await dueTimes(db, 'beat')).length
            // the others carry on: bounded, awaited progress instead of a fixed time
            await vi.waitFor(
              async () => expect((await dueTimes(db, 'beat')).length).toBeGreaterThan(before + 2),
              {
                timeout: 10_000,
                interval: lookMs,
              },
            )
            await kill(children[victim]!)
            children[victim] = await start(url, skews[victim]!)
          }
          await Promise.all(children.map(kill))
          // whoever died as the leader holds the lead for a moment more
          await vi.waitFor(async () => expect((await tick(db)).role).not.toBe('standby'), { timeout: 10_000 })

          const due = await dueTimes(db, 'beat')
          expect(new Set(due).size).toBe(due.length)
          expect(due).toEqual(due.map((_, index) => first + index * everyMs))
          expect(due.length).toBeGreaterThan(kills * 2)
        } finally {
          for (const child of children) child.kill('SIGKILL')
        }
      },
      90_000,
    )
  },
  { needs: ['sessions'] },
)
