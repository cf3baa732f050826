import { eq } from 'drizzle-orm'
import { integer, pgTable, text } from 'drizzle-orm/pg-core'
import type { Millrace } from 'millrace'

/** A table of your own, in the same database. */
export const orders = pgTable('orders', {
  id: text('id').primaryKey(),
  totalCents: integer('total_cents').notNull(),
  state: text('state', { enum: ['placed', 'paid'] }).notNull(),
})

export type Order = typeof orders.$inferSelect

/** What the stream `orders` tells, and what each event carries. */
type OrderEvents = {
  'order.placed': Order
  'order.paid': { id: string }
}

/**
 * The outbox: the order, its event and the job for the mail commit together or not at all, so nobody hears of an
 * order that is not there, and no order goes unheard. Works with every driver, over neon-http in one request.
 */
export async function placeOrder(millrace: Millrace, order: Order): Promise<number> {
  const [offset] = await millrace.batch((tx) => [
    millrace
      .stream<OrderEvents>('orders')
      .publish({ type: 'order.placed', data: order, key: order.id }, { tx }),
    tx.insert(orders).values(order),
    millrace.queue('mails').send({ data: { template: 'placed', order: order.id } }, { tx }),
  ])
  return offset
}

/**
 * Where what is written depends on what was read, a transaction (not over neon-http). Returns false when there is
 * no such order, or it was paid before; then nothing is published.
 */
export async function payOrder(millrace: Millrace, id: string): Promise<boolean> {
  return millrace.transaction(async ({ drizzle: tx }) => {
    const [order] = await tx.select().from(orders).where(eq(orders.id, id)).for('update')
    if (order?.state !== 'placed') return false
    await tx.update(orders).set({ state: 'paid' }).where(eq(orders.id, id))
    await millrace
      .stream<OrderEvents>('orders')
      .publish({ type: 'order.paid', data: { id }, key: id }, { tx })
    return true
  })
}
