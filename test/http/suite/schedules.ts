import { describe, expect, it } from 'vitest'
import { expectJson, expectProblem } from './answers.ts'
import { freshName, type Api } from './target.ts'

interface Shown {
  name: string
  paused: boolean
  nextAt: string | null
  data: unknown
}

/** Schedules over HTTP; that they fire is their own tests' matter. */
export function scheduleSuite(api: Api): void {
  const nightly = (queue: string) => ({
    target: { kind: 'queue', name: queue },
    cron: '0 3 * * *',
    timeZone: 'Europe/Berlin',
    data: { job: 1 },
  })

  describe('a schedule', () => {
    it('is put, read, paused, resumed and deleted', async () => {
      const path = `/v1/schedules/${freshName('n')}`
      const put = await expectJson<Shown>(await api.call('PUT', path, nightly(freshName('q'))), 200)
      expect(put).toMatchObject({ cron: '0 3 * * *', catchUp: 'last', paused: false, data: { job: 1 } })
      expect(Date.parse(put.nextAt!)).not.toBeNaN()
      expect(await expectJson(await api.call('GET', path), 200)).toEqual(put)
      expect(await expectJson(await api.call('POST', `${path}/pause`), 200)).toMatchObject({ paused: true })
      expect(await expectJson(await api.call('POST', `${path}/resume`, {}), 200)).toMatchObject({
        paused: false,
      })
      expect((await api.call('DELETE', path)).status).toBe(204)
      await expectProblem(await api.call('GET', path), 'NOT_FOUND')
      await expectProblem(await api.call('DELETE', path), 'NOT_FOUND')
      for (const action of ['pause', 'resume', 'run'])
        await expectProblem(await api.call('POST', `${path}/${action}`), 'NOT_FOUND')
    })

    it('keeps its data byte for byte, and runs at once when asked', async () => {
      const [path, queue] = [`/v1/schedules/${freshName('n')}`, freshName('q')]
      const data = '{"a": 1.0,  "a2":12345678901234567890}'
      const body = `{"target":{"kind":"queue","name":"${queue}"},"everyMs":86400000,"data":${data}}`
      expect(await (await api.call('PUT', path, body)).text()).toContain(`"data":${data}`)
      expect(await (await api.call('GET', path)).text()).toContain(`"data":${data}`)
      const { number } = await expectJson<{ number: number }>(await api.call('POST', `${path}/run`), 200)
      const claimed = await (await api.call('POST', `/v1/queues/${queue}/claim`)).text()
      expect(claimed).toContain(`"id":${number},`)
      expect(claimed).toContain(`"data":${data}`)
    })

    it('is listed in pages, by name', async () => {
      const prefix = freshName('list')
      for (const end of ['a', 'b', 'c'])
        await api.call('PUT', `/v1/schedules/${prefix}${end}`, nightly(freshName('q')))
      const list = async (query: string) =>
        expectJson<{ schedules: Shown[]; next: string }>(await api.call('GET', `/v1/schedules?${query}`), 200)
      const page = await list(`cursor=${prefix}&limit=2`)
      expect(page.schedules.map(({ name }) => name)).toEqual([`${prefix}a`, `${prefix}b`])
      expect(page.next).toBe(`${prefix}b`)
      expect((await list(`cursor=${page.next}&limit=1`)).schedules[0]?.name).toBe(`${prefix}c`)
    })

    it.each([
      [{ cron: 'every day' }, 'cron'],
      [{ cron: null }, 'cron'],
      [{ timeZone: 'Europe/Atlantis' }, 'timeZone'],
      [{ data: undefined }, 'data'],
      [{ target: { kind: 'topic', name: 'x' } }, 'target.kind'],
      [{ catchUp: 'some' }, 'catchUp'],
      [{ corn: '* * * * *' }, 'corn'],
    ])('is not put with %j', async (change, field) => {
      const path = `/v1/schedules/${freshName('n')}`
      const body = { ...nightly(freshName('q')), ...change }
      await expectProblem(await api.call('PUT', path, body), 'INVALID_INPUT', field)
      await expectProblem(await api.call('GET', path), 'NOT_FOUND')
    })
  })
}
