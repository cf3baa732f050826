-- Appends events to a stream, creating the stream on its first event, in whatever transaction it is
-- called from. The arrays run in parallel, one element an event. With an idempotency key, a repeat
-- within 24 hours returns the offsets of the first call (o_replayed), or raises MR002 when the
-- content hash differs.
--
-- It runs with its owner's rights, so that a role that publishes needs none on the events themselves, and
-- no event can get in around it. Hence the fixed search path, and nobody may call it unless granted to.
CREATE FUNCTION "millrace"."append"(
  p_stream text,
  p_types text[],
  p_keys text[],
  p_data text[],
  p_headers text[],
  p_idempotency_key text,
  p_content_hash text,
  OUT o_stream_id integer,
  OUT o_offsets bigint[],
  OUT o_replayed boolean
)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_lock_key integer;
  v_held text;
  v_last bigint;
  v_hash text;
BEGIN
  o_replayed := false;
  SELECT s.id INTO o_stream_id FROM "millrace"."streams" s WHERE s.name = p_stream;
  IF NOT FOUND THEN
    INSERT INTO "millrace"."streams" (name) VALUES (p_stream) ON CONFLICT (name) DO NOTHING;
    SELECT s.id INTO STRICT o_stream_id FROM "millrace"."streams" s WHERE s.name = p_stream;
  END IF;

  -- Before the lock: whoever waits here for a concurrent twin must not hold readers back.
  IF p_idempotency_key IS NOT NULL THEN
    INSERT INTO "millrace"."publish_keys" AS k (stream_id, key, content_hash, expires_at)
      VALUES (o_stream_id, p_idempotency_key, p_content_hash, clock_timestamp() + interval '24 hours')
      ON CONFLICT (stream_id, key) DO UPDATE
        SET content_hash = excluded.content_hash, offsets = NULL, expires_at = excluded.expires_at
        WHERE k.expires_at < clock_timestamp();
    IF NOT FOUND THEN
      SELECT k.content_hash, k.offsets INTO v_hash, o_offsets FROM "millrace"."publish_keys" k
        WHERE k.stream_id = o_stream_id AND k.key = p_idempotency_key;
      IF v_hash IS DISTINCT FROM p_content_hash THEN
        RAISE EXCEPTION 'the idempotency key was used with other content' USING ERRCODE = 'MR002';
      END IF;
      o_replayed := true;
      RETURN;
    END IF;
  END IF;

  -- One lock per stream and transaction is enough, the first shows the lowest L; more would fill the
  -- lock table of a transaction that publishes thousands of times. The setting is local to the
  -- transaction and falls back with a savepoint, as the lock does.
  v_lock_key := "millrace"."stream_lock_key"(o_stream_id);
  v_held := coalesce(nullif(current_setting('millrace.held', true), ''), ',');
  IF strpos(v_held, ',' || v_lock_key || ',') = 0 THEN
    v_last := "millrace"."last_offset"();
    PERFORM pg_advisory_xact_lock_shared(v_lock_key, (v_last & 2147483647)::integer);
    PERFORM set_config('millrace.held', v_held || v_lock_key || ',', true);
  END IF;

  -- Only now may offsets be drawn.
  WITH inserted AS (
    INSERT INTO "millrace"."events" (stream_id, "offset", type, key, data, headers, published_at)
    SELECT o_stream_id, nextval('"millrace"."event_offset"'), e.type, e.key, e.data::json, e.headers::json,
           clock_timestamp()
      FROM unnest(p_types, p_keys, p_data, p_headers) AS e (type, key, data, headers)
    RETURNING "offset"
  )
  SELECT coalesce(array_agg(i."offset" ORDER BY i."offset"), '{}') INTO o_offsets FROM inserted i;

  IF p_idempotency_key IS NOT NULL THEN
    UPDATE "millrace"."publish_keys" k SET offsets = o_offsets
      WHERE k.stream_id = o_stream_id AND k.key = p_idempotency_key;
  END IF;
END
$$;
--> statement-breakpoint
REVOKE ALL ON FUNCTION "millrace"."append" FROM PUBLIC;
--> statement-breakpoint
-- Deletes a stream's events up to an offset, the lowest first and at most p_limit of them; rows that another
-- is deleting are left to it. With its owner's rights, as append: events go by this way only.
CREATE FUNCTION "millrace"."trim_events"(p_stream text, p_through bigint, p_limit integer) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  v_stream_id integer;
  v_offsets bigint[];
BEGIN
  SELECT s.id INTO v_stream_id FROM "millrace"."streams" s WHERE s.name = p_stream;
  v_offsets := ARRAY(
    SELECT e."offset" FROM "millrace"."events" e
      WHERE e.stream_id = v_stream_id AND e."offset" <= p_through
      ORDER BY e."offset" LIMIT p_limit
      FOR UPDATE SKIP LOCKED);
  DELETE FROM "millrace"."events" e WHERE e.stream_id = v_stream_id AND e."offset" = ANY (v_offsets);
  RETURN cardinality(v_offsets);
END
$$;
--> statement-breakpoint
REVOKE ALL ON FUNCTION "millrace"."trim_events" FROM PUBLIC;
--> statement-breakpoint
-- Tells listeners that a stream may have something new; delivered when the transaction commits.
CREATE FUNCTION "millrace"."wake_stream"(p_stream_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM pg_notify(btrim('"millrace"', '"') || '.wake', 's' || p_stream_id);
END
$$;
--> statement-breakpoint
-- Tells whoever is delivering to a webhook that it was changed.
CREATE FUNCTION "millrace"."wake_webhook"(p_webhook_id text) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM pg_notify(btrim('"millrace"', '"') || '.wake', 'w' || p_webhook_id);
END
$$;
--> statement-breakpoint
-- Millrace's own stream. It stands from the beginning, so that what is published to it in the midst of other
-- work never waits for somebody else's transaction that is about to create it.
INSERT INTO "millrace"."streams" (name, retain_age_ms) VALUES ('millrace.webhooks', 2592000000);
