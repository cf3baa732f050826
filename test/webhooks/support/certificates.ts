import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A certificate and its key, in PEM. */
export interface Certificate {
  cert: Buffer
  key: Buffer
}

/** A certificate authority of a test's own. */
export interface TestAuthority {
  /** The path of its certificate, for NODE_EXTRA_CA_CERTS. */
  path: string
  /** A certificate for an IP address, signed by it. */
  issue(address: string): Certificate
  /** One that its holder signed itself. */
  selfSigned(address: string): Certificate
  remove(): void
}

/** Whether this machine can make certificates; Node itself cannot. */
export const hasOpenssl = spawnSync('openssl', ['version']).status === 0

export function createAuthority(): TestAuthority {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-ca-'))
  const at = (name: string): string => join(folder, name)
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  const read = (name: string): Certificate => ({
    cert: readFileSync(at(`${name}.pem`)),
    key: readFileSync(at(`${name}.key`)),
  })
  let made = 0

  function openssl(...args: string[]): void {
    const { status, stderr } = spawnSync('openssl', args, { encoding: 'utf8' })
    if (status !== 0) throw new Error(`openssl ${args[0]}: ${stderr}`)
  }

  const ca = ['-keyout', at('ca.key'), '-out', at('ca.pem')]
  openssl('req', '-x509', ...newKey, ...ca, '-subj', '/CN=Authority of a test')
  return {
    path: at('ca.pem'),
    issue(address) {
      const name = `issued-${made++}`
      const [request, out] = [at(`${name}.csr`), at(`${name}.pem`)]
      writeFileSync(at(`${name}.ext`), `subjectAltName=IP:${address}\n`)
      const asked = newKey.filter((word) => word !== '-days' && word !== '2')
      openssl('req', ...asked, '-keyout', at(`${name}.key`), '-out', request, '-subj', `/CN=${address}`)
      const signing = ['-CA', at('ca.pem'), '-CAkey', at('ca.key'), '-CAcreateserial', '-days', '2']
      openssl('x509', '-req', '-in', request, '-out', out, ...signing, '-extfile', at(`${name}.ext`))
      return read(name)
    },
    selfSigned(address) {
      const name = `own-${made++}`
      const files = ['-keyout', at(`${name}.key`), '-out', at(`${name}.pem`)]
      const subject = ['-subj', `/CN=${address}`, '-addext', `subjectAltName=IP:${address}`]
      openssl('req', '-x509', ...newKey, ...files, ...subject)
      return read(name)
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
