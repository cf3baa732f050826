-- Sends messages to every queue that is bound to a topic, in whatever transaction it is called from.
-- With nobody bound it sends nothing. A dedupe key counts per queue.
CREATE FUNCTION "millrace"."send_to_topic"(
  p_topic text,
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
  OUT o_queue_ids bigint[],
  OUT o_sent bigint
)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_queue record;
BEGIN
  o_queue_ids := '{}';
  o_sent := 0;
  FOR v_queue IN
    SELECT q.name, s.* FROM "millrace"."topic_bindings" b
      JOIN "millrace"."queues" q ON q.id = b.queue_id
      CROSS JOIN LATERAL "millrace"."send_messages"(q.name, p_data, p_types, p_keys, p_headers, p_priorities,
        p_delays_ms, p_times, p_max_attempts, p_lease_ms, p_backoff_base_ms, p_backoff_max_ms, p_backoff_factors,
        p_dedupe_keys, p_dedupe_windows_ms) s
      WHERE b.topic = p_topic
      ORDER BY b.queue_id
  LOOP
    o_queue_ids := o_queue_ids || v_queue.o_queue_id::bigint;
    o_sent := o_sent + cardinality(coalesce(v_queue.o_sent, v_queue.o_ids));
  END LOOP;
END
$$;
--> statement-breakpoint
-- Wakes the workers of several queues.
CREATE FUNCTION "millrace"."wake_queues"(p_queue_ids bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM "millrace"."wake_queue"(u.id::integer) FROM unnest(p_queue_ids) AS u (id);
END
$$;
--> statement-breakpoint
-- Publish to a topic outside a transaction: send, COMMIT, and only then wake. See `send`.
CREATE PROCEDURE "millrace"."publish_to_topic"(
  p_topic text,
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
  INOUT o_queue_ids bigint[] DEFAULT NULL,
  INOUT o_sent bigint DEFAULT NULL
)
LANGUAGE plpgsql AS $$
BEGIN
  SELECT s.o_queue_ids, s.o_sent INTO o_queue_ids, o_sent
    FROM "millrace"."send_to_topic"(p_topic, p_data, p_types, p_keys, p_headers, p_priorities, p_delays_ms,
      p_times, p_max_attempts, p_lease_ms, p_backoff_base_ms, p_backoff_max_ms, p_backoff_factors,
      p_dedupe_keys, p_dedupe_windows_ms) s;
  COMMIT;
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM "millrace"."wake_queues"(o_queue_ids);
END
$$;
