function throwing(): never {
  throw new Error('on purpose')
}

const revoked = Proxy.revocable({}, {})
revoked.revoke()

/** What code of users may throw, and nobody can look at without care: names, and values. */
export const awkward: [string, unknown][] = [
  ['an object without a prototype', Object.create(null)],
  ['an error whose message throws', Object.defineProperty(new Error('x'), 'message', { get: throwing })],
  ['an error whose message is a symbol', Object.assign(new Error('x'), { message: Symbol('x') })],
  ['an error whose message cannot be text', Object.assign(new Error('x'), { message: Object.create(null) })],
  ['an error whose cause throws', Object.defineProperty(new Error('x'), 'cause', { get: throwing })],
  ['an object whose toString throws', { toString: throwing }],
  ['a proxy that is revoked', revoked.proxy],
]
