import { PGlite } from '@electric-sql/pglite'

/** For what waits for the first PGlite of a process: its start is all computation, and slow beside other work. */
export const pgliteStartMs = 180_000

let shared: PGlite | undefined

/**
 * A PGlite with an empty database. All files of a process get the same one, one after the other: the start takes as
 * long as a file of tests. Whoever gets it leaves it open.
 */
export async function emptyPglite(): Promise<PGlite> {
  shared ??= new PGlite()
  await shared.exec(`
    do $$
    declare name text;
    begin
      for name in select nspname from pg_namespace where nspname !~ '^(pg_|information_schema$)' loop
        execute format('drop schema %I cascade', name);
      end loop;
      create schema public;
    end $$`)
  await shared.exec('discard all')
  return shared
}
