import { describe, expect, it } from 'vitest'
import { createDnsResolver, resolveBySystem, type ResolveName } from '../../src/webhooks/node-resolve.ts'

const failing = (code: string) => async () => {
  throw Object.assign(new Error(code), { code })
}
const v4 = async () => ['8.8.8.8', '8.8.4.4'] as never
const v6 = async () => ['2606:4700:4700::1111'] as never
const fromHosts: ResolveName = async () => [{ address: '10.0.0.5', family: 4 }]
const noHosts: ResolveName = async () => {
  throw new Error('the system was asked')
}

describe('createDnsResolver', () => {
  it('gives all addresses of both families', async () => {
    const resolve = createDnsResolver({ resolve4: v4, resolve6: v6 }, noHosts)
    expect(await resolve('example.com')).toEqual([
      { address: '8.8.8.8', family: 4 },
      { address: '8.8.4.4', family: 4 },
      { address: '2606:4700:4700::1111', family: 6 },
    ])
  })

  it.each(['ENODATA', 'ETIMEOUT', 'ESERVFAIL'])(
    'is content with one family when the other gives %s',
    async (code) => {
      const resolve = createDnsResolver({ resolve4: failing(code), resolve6: v6 }, noHosts)
      expect(await resolve('example.com')).toEqual([{ address: '2606:4700:4700::1111', family: 6 }])
    },
  )

  it('asks the system after a definite "no such name"', async () => {
    const resolver = { resolve4: failing('ENOTFOUND'), resolve6: failing('ENODATA') }
    expect(await createDnsResolver(resolver, fromHosts)('db')).toEqual([{ address: '10.0.0.5', family: 4 }])
  })

  it('does not tie up the system with a name whose servers do not answer (W4)', async () => {
    const resolver = { resolve4: failing('ENODATA'), resolve6: failing('ETIMEOUT') }
    await expect(createDnsResolver(resolver, noHosts)('dead.example.com')).rejects.toMatchObject({
      code: 'ETIMEOUT',
    })
  })
})

describe('resolveBySystem', () => {
  it('knows the hosts file', async () => {
    const addresses = await resolveBySystem('localhost')
    expect(addresses.map(({ address }) => address)).toEqual(
      expect.arrayContaining([expect.stringMatching(/^127\.|^::1$/)]),
    )
  })
})
