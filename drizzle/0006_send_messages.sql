-- Rows come and go here by the thousand, and a claim steps over what vacuum has not yet removed: do
-- not wait until a fifth of the table is dead.
ALTER TABLE "millrace"."messages" SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.1);
--> statement-breakpoint
-- Finds a queue, or makes it.
CREATE FUNCTION "millrace"."ensure_queue"(p_queue text) RETURNS integer
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_queue_id integer;
BEGIN
  SELECT q.id INTO v_queue_id FROM "millrace"."queues" q WHERE q.name = p_queue;
  IF NOT FOUND THEN
    INSERT INTO "millrace"."queues" (name) VALUES (p_queue)
      ON CONFLICT (name) DO UPDATE SET name = excluded.name
      RETURNING id INTO v_queue_id;
  END IF;
  RETURN v_queue_id;
END
$$;
--> statement-breakpoint
-- Tells workers that a queue may have something new, or due at another time; delivered when the
-- transaction commits.
CREATE FUNCTION "millrace"."wake_queue"(p_queue_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM pg_notify(btrim('"millrace"', '"') || '.wake', 'q' || p_queue_id);
END
$$;
--> statement-breakpoint
-- Sends messages to a queue, making the queue with its first, in whatever transaction it is called
-- from. The arrays run in parallel with p_data, one element a message; an array that is null stands
-- for nulls. Of priorities, attempts, leases and backoffs the first element counts for every message that has none: the
-- same numbers a thousand times over would cost more than the messages. A message whose dedupe key is taken is not sent: o_ids
-- has the number of the one that holds the key, and o_sent leaves it out (it holds the positions, from 1, of what was
-- sent; null: all).
--
-- For the lengths of the arrays given the planner would make another plan at every call, hence the setting.
CREATE FUNCTION "millrace"."send_messages"(
  p_queue text,
  p_data text[],
  p_types text[],
  p_keys text[],
  p_headers text[],
  p_priorities bigint[],
  p_delays_ms bigint[],
  p_times text[],
  p_max_attempts bigint[],
  p_lease_ms bigint[],
  p_backoff_base_ms bigint[],
  p_backoff_max_ms bigint[],
  p_backoff_factors double precision[],
  p_dedupe_keys text[],
  p_dedupe_windows_ms bigint[],
  OUT o_queue_id integer,
  OUT o_ids bigint[],
  OUT o_sent bigint[]
)
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_sequence regclass := '"millrace"."messages_id_seq"';
  v_ids bigint[];
  v_behind boolean[];
BEGIN
  o_queue_id := "millrace"."ensure_queue"(p_queue);
  v_ids := ARRAY(SELECT nextval(v_sequence) FROM generate_series(1, cardinality(p_data)));
  o_ids := v_ids;

  IF p_dedupe_keys IS NOT NULL THEN
    -- sorted, so that two senders of the same keys wait for each other in one order
    INSERT INTO "millrace"."dedupe_keys" AS k (queue_id, key, message_id, expires_at)
      SELECT o_queue_id, d.key, v_ids[d.position], v_now + d.window_ms * interval '1 ms'
        FROM (
          SELECT DISTINCT ON (u.key) u.key, u.window_ms, u.position
            FROM unnest(p_dedupe_keys, p_dedupe_windows_ms) WITH ORDINALITY AS u (key, window_ms, position)
            WHERE u.key IS NOT NULL
            ORDER BY u.key, u.position
        ) d
        ORDER BY d.key
      ON CONFLICT (queue_id, key) DO UPDATE
        SET message_id = excluded.message_id, expires_at = excluded.expires_at
        WHERE k.expires_at <= v_now;
    o_ids := ARRAY(
      SELECT coalesce(k.message_id, v_ids[u.position])
        FROM unnest(p_dedupe_keys) WITH ORDINALITY AS u (key, position)
        LEFT JOIN "millrace"."dedupe_keys" k ON k.queue_id = o_queue_id AND k.key = u.key
        ORDER BY u.position
    );
    o_sent := ARRAY(
      SELECT u.position FROM unnest(v_ids, o_ids) WITH ORDINALITY AS u (drawn, id, position)
        WHERE u.drawn = u.id
        ORDER BY u.position
    );
  END IF;

  -- The second of a key and all after it go straight behind the first: both commit together, so
  -- whoever settles the first finds them.
  IF p_keys IS NOT NULL THEN
    v_behind := ARRAY(
      SELECT k.key IS NOT NULL AND row_number() OVER (PARTITION BY k.key, k.sent ORDER BY k.position) > 1
        FROM (
          SELECT u.key, u.position, o_ids[u.position] = v_ids[u.position] AS sent
            FROM unnest(p_keys) WITH ORDINALITY AS u (key, position)
        ) k
        ORDER BY k.position
    );
  END IF;
  INSERT INTO "millrace"."messages" (id, due_at, queue_id, state, priority, attempts, max_attempts, lease_ms,
      backoff_base_ms, backoff_max_ms, backoff_factor, sent_at, type, key, data, headers)
    SELECT v_ids[u.position], w.due_at, o_queue_id,
        CASE
          WHEN v_behind[u.position] THEN 'blocked'
          WHEN w.due_at IS NOT NULL THEN 'delayed'
          ELSE 'ready'
        END,
        coalesce(u.priority, p_priorities[1], 0), 0,
        coalesce(u.max_attempts, p_max_attempts[1]), coalesce(u.lease_ms, p_lease_ms[1]),
        coalesce(u.backoff_base_ms, p_backoff_base_ms[1]), coalesce(u.backoff_max_ms, p_backoff_max_ms[1]),
        coalesce(u.backoff_factor, p_backoff_factors[1]), v_now, u.type, u.key, u.data::json, u.headers::json
      FROM unnest(p_data, p_types, p_keys, p_headers, p_priorities, p_delays_ms, p_times, p_max_attempts,
        p_lease_ms, p_backoff_base_ms, p_backoff_max_ms, p_backoff_factors) WITH ORDINALITY
        AS u (data, type, key, headers, priority, delay_ms, at, max_attempts,
        lease_ms, backoff_base_ms, backoff_max_ms, backoff_factor, position)
      CROSS JOIN LATERAL (
        SELECT CASE WHEN d.at > v_now THEN d.at END AS due_at
          FROM (SELECT coalesce(u.at::timestamptz, v_now + u.delay_ms * interval '1 ms') AS at) d
      ) w
      WHERE o_ids[u.position] = v_ids[u.position];
END
$$;
--> statement-breakpoint
-- Send outside a transaction, in one round trip: send, COMMIT, and only then wake, so that the global
-- lock of a notifying commit is not held while the data is written to disk; see `publish`. Inside a transaction
-- block it raises 2D000: there `send_messages` and `wake_queue` are called.
CREATE PROCEDURE "millrace"."send"(
  p_queue text,
  p_data text[],
  p_types text[],
  p_keys text[],
  p_headers text[],
  p_priorities bigint[],
  p_delays_ms bigint[],
  p_times text[],
  p_max_attempts bigint[],
  p_lease_ms bigint[],
  p_backoff_base_ms bigint[],
  p_backoff_max_ms bigint[],
  p_backoff_factors double precision[],
  p_dedupe_keys text[],
  p_dedupe_windows_ms bigint[],
  INOUT o_queue_id integer DEFAULT NULL,
  INOUT o_ids bigint[] DEFAULT NULL,
  INOUT o_sent bigint[] DEFAULT NULL
)
LANGUAGE plpgsql AS $$
BEGIN
  SELECT s.o_queue_id, s.o_ids, s.o_sent INTO o_queue_id, o_ids, o_sent
    FROM "millrace"."send_messages"(p_queue, p_data, p_types, p_keys, p_headers, p_priorities, p_delays_ms,
      p_times, p_max_attempts, p_lease_ms, p_backoff_base_ms, p_backoff_max_ms, p_backoff_factors,
      p_dedupe_keys, p_dedupe_windows_ms) s;
  COMMIT;
  IF coalesce(o_sent, o_ids) <> '{}' THEN
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM "millrace"."wake_queue"(o_queue_id);
  END IF;
END
$$;
