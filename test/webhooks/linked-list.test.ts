import { describe, expect, it } from 'vitest'
import { createCancel } from '../../src/webhooks/cancel.ts'
import { createLinkedList } from '../../src/webhooks/linked-list.ts'

function contents<Value>(list: ReturnType<typeof createLinkedList<Value>>): Value[] {
  const values: Value[] = []
  list.forEach((value) => values.push(value))
  return values
}

describe('a linked list', () => {
  it.each([
    ['the first', 0, ['b', 'c']],
    ['one in the middle', 1, ['a', 'c']],
    ['the last', 2, ['a', 'b']],
  ])('gives up %s and keeps the order of the rest', (_what, index, rest) => {
    const list = createLinkedList<string>()
    const links = ['a', 'b', 'c'].map((value) => list.add(value))
    list.remove(links[index]!)
    // twice does no harm
    list.remove(links[index]!)
    expect([contents(list), list.size, list.first?.value]).toEqual([rest, 2, rest[0]])
    list.add('d')
    expect(contents(list)).toEqual([...rest, 'd'])
  })

  it('is empty after its only one is gone, however often that is said', () => {
    const list = createLinkedList<string>()
    const link = list.add('a')
    for (let n = 0; n < 2; n++) list.remove(link)
    expect([contents(list), list.size, list.first]).toEqual([[], 0, null])
  })

  it('is walked over to the end though what is visited leaves it', () => {
    const list = createLinkedList<string>()
    const links = new Map(['a', 'b', 'c'].map((value) => [value, list.add(value)]))
    const seen: string[] = []
    list.forEach((value) => {
      seen.push(value)
      list.remove(links.get(value)!)
    })
    expect([seen, list.size]).toEqual([['a', 'b', 'c'], 0])
  })
})

describe('a cancel', () => {
  it('calls each callback once, but for those taken back', () => {
    const cancel = createCancel()
    const called: string[] = []
    const [first] = ['a', 'b', 'c'].map((name) => cancel.add(() => called.push(name)))
    cancel.delete(first!)
    for (let n = 0; n < 2; n++) cancel.cancel()
    expect([called, cancel.cancelled]).toEqual([['b', 'c'], true])
  })
})
