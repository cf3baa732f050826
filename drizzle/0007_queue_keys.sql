-- Per-key order. All of a key's messages go one after the other, in the order of their numbers. A
-- claim that meets one which is not its key's turn parks it as `blocked`, out of the index of claims;
-- whoever takes a message out of a key's way (settled, dead, given back) lets the next one out.
--
-- Both happen under the key's advisory lock, held until commit. A claim only tries for it, and leaves
-- a key alone that somebody else is at; a settle waits, for nobody but a short claim or the same
-- message's other settle can hold it.
--
-- What always holds: while no message of a key is leased, its first one is not blocked.
CREATE FUNCTION "millrace"."key_lock"(p_queue_id integer, p_key text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hashtextextended('"millrace"' || p_queue_id::text || ':' || p_key, 0);
--> statement-breakpoint
-- Lets the first message of each key out, where none is leased. The caller holds the keys' locks.
CREATE FUNCTION "millrace"."unblock_heads"(p_queue_id integer, p_keys text[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
BEGIN
  UPDATE "millrace"."messages" m
    SET state = CASE WHEN m.due_at > v_now THEN 'delayed' ELSE 'ready' END,
        due_at = CASE WHEN m.due_at > v_now THEN m.due_at END
    FROM (SELECT DISTINCT u.key FROM unnest(p_keys) AS u (key)) k
    CROSS JOIN LATERAL (
      SELECT h.id FROM "millrace"."messages" h
        WHERE h.queue_id = p_queue_id AND h.key = k.key AND h.key IS NOT NULL AND h.state <> 'done'
        ORDER BY h.id
        LIMIT 1
    ) head
    WHERE m.id = head.id
      AND m.state = 'blocked'
      AND NOT EXISTS (
        SELECT FROM "millrace"."messages" l
          WHERE l.queue_id = p_queue_id AND l.key = k.key AND l.key IS NOT NULL AND l.state = 'leased'
      );
END
$$;
--> statement-breakpoint
-- After messages of these keys were settled in this transaction: lets the next ones out and wakes
-- workers, also when the next was not blocked: a claim may have left the key alone meanwhile.
CREATE FUNCTION "millrace"."release_keys"(p_queue_id integer, p_keys text[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
  -- With the snapshot of an earlier moment it would not see who is blocked, and strand them.
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION 'messages with a key are settled at READ COMMITTED only' USING ERRCODE = 'MR001';
  END IF;
  -- sorted, so that two settles of several keys never wait for each other in a circle
  PERFORM pg_advisory_xact_lock(l.lock) FROM (
    SELECT DISTINCT "millrace"."key_lock"(p_queue_id, u.key) AS lock FROM unnest(p_keys) AS u (key) ORDER BY 1
  ) l;
  PERFORM "millrace"."unblock_heads"(p_queue_id, p_keys);
  IF EXISTS (
    SELECT FROM unnest(p_keys) AS u (key)
      CROSS JOIN LATERAL (
        SELECT h.id FROM "millrace"."messages" h
          WHERE h.queue_id = p_queue_id AND h.key = u.key AND h.key IS NOT NULL AND h.state <> 'done'
          ORDER BY h.id
          LIMIT 1
      ) head
  ) THEN
    PERFORM "millrace"."wake_queue"(p_queue_id);
  END IF;
END
$$;
--> statement-breakpoint
-- Of messages that a claim has locked: which may be claimed now. The others are parked, together with
-- what else stands of their keys near the front, or left alone where another transaction is at the key.
CREATE FUNCTION "millrace"."admit_in_key_order"(
  p_queue_id integer,
  p_ids bigint[],
  OUT o_admitted bigint[],
  OUT o_contended text[],
  OUT o_parked boolean
)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  v_locked text[];
BEGIN
  WITH tried AS MATERIALIZED (
    SELECT d.key, pg_try_advisory_xact_lock("millrace"."key_lock"(p_queue_id, d.key)) AS got
      FROM (SELECT DISTINCT m.key FROM "millrace"."messages" m WHERE m.id = ANY (p_ids) AND m.key IS NOT NULL) d
  )
  SELECT array_agg(t.key) FILTER (WHERE t.got), array_agg(t.key) FILTER (WHERE NOT t.got)
    INTO v_locked, o_contended FROM tried t;

  -- A new statement, so that it sees what those who held the locks before have committed.
  WITH head AS MATERIALIZED (
    SELECT h.id FROM unnest(v_locked) AS u (key)
      CROSS JOIN LATERAL (
        SELECT m.id FROM "millrace"."messages" m
          WHERE m.queue_id = p_queue_id AND m.key = u.key AND m.key IS NOT NULL AND m.state <> 'done'
          ORDER BY m.id
          LIMIT 1
      ) h
      WHERE NOT EXISTS (
        SELECT FROM "millrace"."messages" l
          WHERE l.queue_id = p_queue_id AND l.key = u.key AND l.key IS NOT NULL AND l.state = 'leased'
      )
  )
  SELECT array_agg(m.id) INTO o_admitted
    FROM "millrace"."messages" m
    WHERE m.id = ANY (p_ids) AND (m.key IS NULL OR m.id IN (SELECT head.id FROM head));

  UPDATE "millrace"."messages" m SET state = 'blocked'
    WHERE m.id = ANY (p_ids) AND m.key = ANY (v_locked) AND m.id <> ALL (coalesce(o_admitted, '{}'));
  o_parked := FOUND;
  IF NOT o_parked THEN
    RETURN;
  END IF;
  -- A busy key: a thousand of its messages at the front would cost a thousand claims otherwise.
  UPDATE "millrace"."messages" m SET state = 'blocked'
    WHERE m.id = ANY (ARRAY(
      SELECT l.id FROM "millrace"."messages" l
        WHERE l.state = 'ready' AND l.id = ANY (ARRAY(
          SELECT f.id FROM (
            SELECT r.id, r.key FROM "millrace"."messages" r
              WHERE r.queue_id = p_queue_id AND r.state = 'ready'
              ORDER BY r.priority, r.id
              LIMIT 1000
          ) f
          WHERE f.key = ANY (v_locked) AND f.id <> ALL (coalesce(o_admitted, '{}'))
        ))
        FOR UPDATE SKIP LOCKED
    ));
  -- The claim has not leased what was admitted yet, so its keys would look free here; they are, and
  -- their first message is the admitted one, which is not blocked.
  PERFORM "millrace"."unblock_heads"(p_queue_id, v_locked);
END
$$;
