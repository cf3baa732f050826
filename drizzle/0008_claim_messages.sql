-- Moves messages into the dead letters, with a reason each; only those whose lease is the one named.
-- Answers which positions (from 1) did move, and their keys, which the caller releases.
CREATE FUNCTION "millrace"."bury_messages"(
  p_queue_id integer,
  p_ids bigint[],
  p_leases uuid[],
  p_reasons text[],
  OUT o_positions bigint[],
  OUT o_keys text[]
)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
BEGIN
  WITH gone AS (
    DELETE FROM "millrace"."messages" m
      USING unnest(p_ids, p_leases, p_reasons) WITH ORDINALITY AS g (id, lease, reason, position)
      WHERE m.id = g.id AND m.queue_id = p_queue_id AND m.lease_token = g.lease
      RETURNING m.*, g.reason, g.position
  ), buried AS (
    INSERT INTO "millrace"."dead_letters" (id, queue_id, priority, attempts, max_attempts, lease_ms,
        backoff_base_ms, backoff_max_ms, backoff_factor, sent_at, type, key, data, headers, died_at, reason)
      SELECT g.id, g.queue_id, g.priority, g.attempts, g.max_attempts, g.lease_ms,
          g.backoff_base_ms, g.backoff_max_ms, g.backoff_factor, g.sent_at, g.type, g.key, g.data, g.headers,
          clock_timestamp(),
          coalesce(g.reason, format('attempt %s of %s failed', g.attempts, g.max_attempts))
        FROM gone g
  )
  SELECT array_agg(g.position), array_agg(DISTINCT g.key) FILTER (WHERE g.key IS NOT NULL)
    INTO o_positions, o_keys FROM gone g;
END
$$;
--> statement-breakpoint
-- What time has changed: delayed messages become ready, and so do leased ones whose lease ran out,
-- unless that was their last attempt; then they are dead. Never waits: what another transaction
-- holds is left for the next call.
CREATE FUNCTION "millrace"."release_due"(
  p_queue_id integer,
  p_limit integer,
  OUT o_released bigint,
  OUT o_died bigint
)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_ids bigint[];
  v_keys text[];
  v_dead_ids bigint[];
  v_dead_leases uuid[];
  v_reasons text[];
BEGIN
  SELECT array_agg(d.id) FILTER (WHERE NOT d.exhausted),
      array_agg(DISTINCT d.key) FILTER (WHERE d.key IS NOT NULL AND d.state = 'leased'),
      array_agg(d.id) FILTER (WHERE d.exhausted),
      array_agg(d.lease_token) FILTER (WHERE d.exhausted),
      array_agg(format('the lease of attempt %s of %s ran out', d.attempts, d.max_attempts)
        || coalesce('; before that: ' || d.last_error, '')) FILTER (WHERE d.exhausted)
    INTO v_ids, v_keys, v_dead_ids, v_dead_leases, v_reasons
    FROM (
      SELECT m.*, m.state = 'leased' AND m.attempts >= m.max_attempts AS exhausted
        FROM "millrace"."messages" m
        WHERE m.queue_id = p_queue_id AND m.state IN ('delayed', 'leased') AND m.due_at <= v_now
          AND (m.state = 'delayed' OR m.key IS NULL
            OR pg_try_advisory_xact_lock("millrace"."key_lock"(p_queue_id, m.key)))
        ORDER BY m.due_at
        LIMIT p_limit
        FOR UPDATE SKIP LOCKED
    ) d;
  o_released := coalesce(cardinality(v_ids), 0);
  o_died := coalesce(cardinality(v_dead_ids), 0);
  IF o_released > 0 THEN
    UPDATE "millrace"."messages" m SET state = 'ready', due_at = NULL, lease_token = NULL WHERE m.id = ANY (v_ids);
  END IF;
  IF o_died > 0 THEN
    PERFORM "millrace"."bury_messages"(p_queue_id, v_dead_ids, v_dead_leases, v_reasons);
  END IF;
  IF v_keys IS NOT NULL THEN
    PERFORM "millrace"."unblock_heads"(p_queue_id, v_keys);
  END IF;
END
$$;
--> statement-breakpoint
-- Claims up to p_limit messages under a new lease token. Where it finds fewer, a last row without an
-- id says in how many milliseconds to look again (null: nothing is due by itself). The order of the rows is the
-- caller's to make, which is cheaper there. A database of another
-- environment than p_environment hands out nothing (MR004); the row is read together with the queue's.
--
-- The planner is steered: a plan is kept for the session, and one made while the table was empty
-- would sort the whole table when it is not. Only so is it kept at all: for the lengths of arrays given the
-- planner would make another one at every call, which took longer than the rest. And should there be no
-- way around what is off, Postgres up to 17 puts the cost so high that it would compile the plan at every call.
CREATE FUNCTION "millrace"."claim_messages"(
  p_queue text,
  p_limit integer,
  p_types text[],
  p_lease_ms integer,
  p_environment text DEFAULT NULL
)
RETURNS TABLE (
  o_id bigint,
  o_lease uuid,
  o_attempt integer,
  o_max_attempts integer,
  o_lease_ms integer,
  o_priority integer,
  o_type text,
  o_key text,
  o_data text,
  o_headers text,
  o_sent_at timestamptz,
  o_last_error text,
  o_next_ms bigint
)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  v_queue_id integer;
  v_ours boolean;
  v_now timestamptz := clock_timestamp();
  v_token uuid := gen_random_uuid();
  v_left integer := p_limit;
  v_rounds integer := 0;
  v_ids bigint[];
  v_keyed boolean;
  v_contended text[];
  v_busy text[] := '{}';
  v_parked boolean;
  v_more boolean := false;
BEGIN
  SELECT q.id, i.environment IS NOT DISTINCT FROM p_environment INTO v_queue_id, v_ours
    FROM "millrace"."installation" i LEFT JOIN "millrace"."queues" q ON q.name = p_queue
    WHERE i.singleton = 1;
  IF v_ours IS NOT TRUE THEN
    RAISE EXCEPTION 'the database belongs to another environment' USING ERRCODE = 'MR004';
  END IF;
  IF v_queue_id IS NULL THEN
    RETURN;
  END IF;
  -- If the server dies and forgets this claim, the message is waiting again and the lease is void:
  -- nothing is lost, so nobody has to wait for the disk.
  PERFORM set_config('synchronous_commit', 'off', true);

  IF EXISTS (
    SELECT FROM "millrace"."messages" m
      WHERE m.queue_id = v_queue_id AND m.state IN ('delayed', 'leased') AND m.due_at <= v_now
  ) THEN
    SELECT d.o_released + d.o_died >= p_limit + 100 INTO v_more
      FROM "millrace"."release_due"(v_queue_id, p_limit + 100) d;
  END IF;

  LOOP
    v_rounds := v_rounds + 1;
    SELECT array_agg(c.id), bool_or(c.key IS NOT NULL) INTO v_ids, v_keyed
      FROM (
        SELECT m.id, m.key FROM "millrace"."messages" m
          WHERE m.queue_id = v_queue_id AND m.state = 'ready'
            AND (p_types IS NULL OR m.type = ANY (p_types))
            AND (m.key IS NULL OR m.key <> ALL (v_busy))
          ORDER BY m.priority, m.id
          LIMIT v_left
          FOR UPDATE SKIP LOCKED
      ) c;
    v_parked := false;
    IF v_keyed THEN
      SELECT a.o_admitted, a.o_contended, a.o_parked INTO v_ids, v_contended, v_parked
        FROM "millrace"."admit_in_key_order"(v_queue_id, v_ids) a;
      v_busy := v_busy || coalesce(v_contended, '{}');
    END IF;
    IF v_ids IS NOT NULL THEN
      RETURN QUERY
        UPDATE "millrace"."messages" m
          SET state = 'leased', lease_token = v_token, attempts = m.attempts + 1,
              due_at = v_now + coalesce(p_lease_ms, m.lease_ms) * interval '1 ms'
          WHERE m.id = ANY (v_ids)
          RETURNING m.id, v_token, m.attempts, m.max_attempts, coalesce(p_lease_ms, m.lease_ms), m.priority::integer,
              m.type, m.key, m.data::text, m.headers::text, m.sent_at, m.last_error, NULL::bigint;
      v_left := v_left - cardinality(v_ids);
    END IF;
    EXIT WHEN v_left <= 0;
    EXIT WHEN NOT v_parked AND v_contended IS NULL;
    -- Enough parked for one call.
    IF v_rounds >= 20 THEN
      v_more := true;
      EXIT;
    END IF;
    v_contended := NULL;
  END LOOP;

  IF v_left > 0 THEN
    SELECT greatest(0, ceil(extract(epoch FROM m.due_at - clock_timestamp()) * 1000))::bigint INTO o_next_ms
      FROM "millrace"."messages" m
      WHERE m.queue_id = v_queue_id AND m.state IN ('delayed', 'leased')
      ORDER BY m.due_at
      LIMIT 1;
    IF v_more THEN
      o_next_ms := 0;
    ELSIF o_next_ms = 0 OR v_busy <> '{}' THEN
      -- Another transaction holds something that is due, or a key: not before a second, lest it be spun on.
      o_next_ms := least(1000, coalesce(nullif(o_next_ms, 0), 1000));
    END IF;
    RETURN NEXT;
  END IF;
END
$$;
