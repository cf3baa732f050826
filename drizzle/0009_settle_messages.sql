-- All of these name the lease with the message (Q1), answer the positions (from 1) of those whose
-- lease still held, and change nothing about the others. A lease ends when the message is settled, or
-- when somebody claims or sweeps it after its time; not sooner, so that work done a moment late counts.
--
-- An ack answers {0} where all held, as they nearly always do: to write and read a thousand positions took the caller
-- as long as all else about the answer.
--
-- None of them names the state: a token is there if and only if it is `leased` (a check sees to it), and
-- with the state the planner would take the partial index of all that is leased or delayed.
CREATE FUNCTION "millrace"."ack_messages"(p_queue text, p_ids bigint[], p_leases uuid[]) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  v_queue_id integer;
  v_retain_ms bigint;
  v_positions bigint[];
  v_keys text[];
BEGIN
  SELECT q.id, q.retain_finished_ms INTO v_queue_id, v_retain_ms FROM "millrace"."queues" q WHERE q.name = p_queue;
  IF v_retain_ms IS NULL THEN
    WITH done AS (
      DELETE FROM "millrace"."messages" m
        USING unnest(p_ids, p_leases) WITH ORDINALITY AS g (id, lease, position)
        WHERE m.id = g.id AND m.queue_id = v_queue_id AND m.lease_token = g.lease
        RETURNING g.position, m.key
    )
    SELECT array_agg(d.position), array_agg(DISTINCT d.key) FILTER (WHERE d.key IS NOT NULL)
      INTO v_positions, v_keys FROM done d;
  ELSE
    WITH done AS (
      UPDATE "millrace"."messages" m
        SET state = 'done', lease_token = NULL, due_at = clock_timestamp() + v_retain_ms * interval '1 ms'
        FROM unnest(p_ids, p_leases) WITH ORDINALITY AS g (id, lease, position)
        WHERE m.id = g.id AND m.queue_id = v_queue_id AND m.lease_token = g.lease
        RETURNING g.position, m.key
    )
    SELECT array_agg(d.position), array_agg(DISTINCT d.key) FILTER (WHERE d.key IS NOT NULL)
      INTO v_positions, v_keys FROM done d;
  END IF;
  IF v_keys IS NOT NULL THEN
    PERFORM "millrace"."release_keys"(v_queue_id, v_keys);
  END IF;
  IF cardinality(v_positions) = cardinality(p_ids) THEN
    RETURN '{0}';
  END IF;
  RETURN coalesce(v_positions, '{}');
END
$$;
--> statement-breakpoint
-- Gives messages back to be tried again: after the delay given, or else after their own backoff
-- (between half of base * factor^(attempt - 1) and the whole, at most max). After the last attempt
-- they die instead, with the error for a reason.
CREATE FUNCTION "millrace"."retry_messages"(
  p_queue text,
  p_ids bigint[],
  p_leases uuid[],
  p_delays_ms bigint[],
  p_errors text[],
  OUT o_waiting bigint[],
  OUT o_dead bigint[]
)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  v_queue_id integer;
  v_now timestamptz := clock_timestamp();
  v_keys text[];
  v_dead_keys text[];
BEGIN
  SELECT q.id INTO v_queue_id FROM "millrace"."queues" q WHERE q.name = p_queue;
  WITH waiting AS (
    UPDATE "millrace"."messages" m
      SET state = CASE WHEN w.delay_ms > 0 THEN 'delayed' ELSE 'ready' END,
          due_at = CASE WHEN w.delay_ms > 0 THEN v_now + w.delay_ms * interval '1 ms' END,
          lease_token = NULL,
          last_error = coalesce(w.error, m.last_error)
      FROM (
        -- the wait is drawn here, once, for two columns need it; 64 attempts are beyond any maximum
        SELECT c.id, g.position, g.error, g.lease,
            coalesce(g.delay_ms, ceil(
              least(c.backoff_max_ms, c.backoff_base_ms * power(c.backoff_factor, least(c.attempts, 64) - 1))
              * (0.5 + random() / 2)
            )::bigint) AS delay_ms
          FROM unnest(p_ids, p_leases, p_delays_ms, p_errors) WITH ORDINALITY AS g (id, lease, delay_ms, error, position)
          JOIN "millrace"."messages" c ON c.id = g.id AND c.lease_token = g.lease
          OFFSET 0
      ) w
      WHERE m.id = w.id AND m.queue_id = v_queue_id AND m.lease_token = w.lease
        AND m.attempts < m.max_attempts
      RETURNING w.position, m.key
  )
  SELECT coalesce(array_agg(w.position), '{}'), array_agg(DISTINCT w.key) FILTER (WHERE w.key IS NOT NULL)
    INTO o_waiting, v_keys FROM waiting w;
  SELECT coalesce(b.o_positions, '{}'), b.o_keys INTO o_dead, v_dead_keys
    FROM "millrace"."bury_messages"(v_queue_id, p_ids, p_leases, p_errors) b;
  IF v_keys IS NOT NULL OR v_dead_keys IS NOT NULL THEN
    PERFORM "millrace"."release_keys"(v_queue_id, coalesce(v_keys, '{}') || coalesce(v_dead_keys, '{}'));
  END IF;
  IF o_waiting <> '{}' THEN
    PERFORM "millrace"."wake_queue"(v_queue_id);
  END IF;
END
$$;
--> statement-breakpoint
-- Gives back messages that were claimed and not begun: they are ready, and the attempt does not count.
CREATE FUNCTION "millrace"."return_messages"(p_queue text, p_ids bigint[], p_leases uuid[]) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  v_queue_id integer;
  v_positions bigint[];
  v_keys text[];
BEGIN
  SELECT q.id INTO v_queue_id FROM "millrace"."queues" q WHERE q.name = p_queue;
  WITH given AS (
    UPDATE "millrace"."messages" m
      SET state = 'ready', due_at = NULL, lease_token = NULL, attempts = m.attempts - 1
      FROM unnest(p_ids, p_leases) WITH ORDINALITY AS g (id, lease, position)
      WHERE m.id = g.id AND m.queue_id = v_queue_id AND m.lease_token = g.lease
      RETURNING g.position, m.key
  )
  SELECT array_agg(g.position), array_agg(DISTINCT g.key) FILTER (WHERE g.key IS NOT NULL)
    INTO v_positions, v_keys FROM given g;
  IF v_keys IS NOT NULL THEN
    PERFORM "millrace"."release_keys"(v_queue_id, v_keys);
  END IF;
  IF v_positions IS NOT NULL THEN
    PERFORM "millrace"."wake_queue"(v_queue_id);
  END IF;
  RETURN coalesce(v_positions, '{}');
END
$$;
--> statement-breakpoint
-- Prolongs leases to the given time from now, or the message's own lease time; never shortens one. A
-- message that another transaction is settling right now is answered as held and left alone: to wait
-- for that transaction would let the other leases of the batch run out.
CREATE FUNCTION "millrace"."extend_messages"(p_queue text, p_ids bigint[], p_leases uuid[], p_lease_ms integer)
RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  v_queue_id integer;
  v_positions bigint[];
  v_free bigint[];
BEGIN
  SELECT q.id INTO v_queue_id FROM "millrace"."queues" q WHERE q.name = p_queue;
  v_free := ARRAY(
    SELECT m.id FROM "millrace"."messages" m
      JOIN unnest(p_ids, p_leases) AS g (id, lease) ON m.id = g.id AND m.lease_token = g.lease
      WHERE m.queue_id = v_queue_id
      FOR UPDATE OF m SKIP LOCKED
  );
  UPDATE "millrace"."messages" m
    SET due_at = greatest(m.due_at, clock_timestamp() + coalesce(p_lease_ms, m.lease_ms) * interval '1 ms')
    WHERE m.id = ANY (v_free);
  SELECT array_agg(g.position) INTO v_positions
    FROM unnest(p_ids, p_leases) WITH ORDINALITY AS g (id, lease, position)
    JOIN "millrace"."messages" m ON m.id = g.id AND m.lease_token = g.lease
    WHERE m.queue_id = v_queue_id;
  RETURN coalesce(v_positions, '{}');
END
$$;
--> statement-breakpoint
-- Moves messages into the dead letters at once, whatever attempts they had left.
CREATE FUNCTION "millrace"."fail_messages"(p_queue text, p_ids bigint[], p_leases uuid[], p_reasons text[])
RETURNS bigint[]
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_queue_id integer;
  v_positions bigint[];
  v_keys text[];
BEGIN
  SELECT q.id INTO v_queue_id FROM "millrace"."queues" q WHERE q.name = p_queue;
  SELECT b.o_positions, b.o_keys INTO v_positions, v_keys
    FROM "millrace"."bury_messages"(v_queue_id, p_ids, p_leases, p_reasons) b;
  IF v_keys IS NOT NULL THEN
    PERFORM "millrace"."release_keys"(v_queue_id, v_keys);
  END IF;
  RETURN coalesce(v_positions, '{}');
END
$$;
--> statement-breakpoint
-- Sends dead letters of a queue again, the oldest first, under the numbers they had and with all
-- their attempts: the ones named, or any where p_ids is null.
CREATE FUNCTION "millrace"."redrive_dead_letters"(p_queue text, p_ids bigint[], p_limit integer) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  v_queue_id integer;
  v_ids bigint[];
BEGIN
  SELECT q.id INTO v_queue_id FROM "millrace"."queues" q WHERE q.name = p_queue;
  WITH chosen AS (
    SELECT d.id FROM "millrace"."dead_letters" d
      WHERE d.queue_id = v_queue_id AND (p_ids IS NULL OR d.id = ANY (p_ids))
      ORDER BY d.id
      LIMIT p_limit
      FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM "millrace"."dead_letters" d USING chosen c WHERE d.id = c.id RETURNING d.*
  ), sent AS (
    INSERT INTO "millrace"."messages" (id, queue_id, state, priority, attempts, max_attempts, lease_ms,
        backoff_base_ms, backoff_max_ms, backoff_factor, sent_at, type, key, data, headers, last_error)
      SELECT g.id, g.queue_id, 'ready', g.priority, 0, g.max_attempts, g.lease_ms,
          g.backoff_base_ms, g.backoff_max_ms, g.backoff_factor, g.sent_at, g.type, g.key, g.data, g.headers, g.reason
        FROM gone g
      RETURNING id
  )
  SELECT array_agg(s.id ORDER BY s.id) INTO v_ids FROM sent s;
  IF v_ids IS NOT NULL THEN
    PERFORM "millrace"."wake_queue"(v_queue_id);
  END IF;
  RETURN coalesce(v_ids, '{}');
END
$$;
