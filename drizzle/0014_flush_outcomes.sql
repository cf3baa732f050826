-- The outcomes of deliveries, written for many leased webhooks at once. Functions, since sessions keep the plans of
-- functions: as one statement of its own this took 2 ms to plan, beside parsing it, and 0.3 ms to run.
--
-- Locks those whose lease holds, which the token proves. Waits for no row lock, so that a transaction that sits on one
-- webhook delays no other: o_busy are those that someone else is changing at this moment. Whatever looks at the held
-- ones afterwards has a newer snapshot than the locks. Of those that are not simply active and well the answer says how
-- they stand: of most there is nothing to say, and an array costs by its length.
--
-- Their plans are kept while the tables grow, hence the settings: rows of webhooks come by `id = ANY`, whatever the
-- statistics say, and are matched by a hash.
CREATE FUNCTION "millrace"."hold_webhooks"(
  p_ids text[],
  p_tokens uuid[],
  OUT o_ids text[],
  OUT o_unwell text[],
  OUT o_states text[],
  OUT o_failing_since timestamptz[],
  OUT o_disable_after timestamptz[],
  OUT o_busy text[],
  OUT o_lost text[]
)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_nestloop = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
BEGIN
  SELECT coalesce(array_agg(h.id), '{}'), array_agg(h.id) FILTER (WHERE h.unwell),
      array_agg(h.state) FILTER (WHERE h.unwell), array_agg(h.failing_since) FILTER (WHERE h.unwell),
      array_agg(h.disable_after) FILTER (WHERE h.unwell)
    INTO o_ids, o_unwell, o_states, o_failing_since, o_disable_after
    FROM (
      SELECT w.id, w.state, w.failing_since, w.disable_after,
          w.state <> 'active' OR w.failing_since IS NOT NULL OR w.disable_after IS NOT NULL AS unwell
        FROM "millrace"."webhooks" w
        JOIN unnest(p_ids, p_tokens) AS l (id, token) ON l.id = w.id AND l.token = w.lease_token
        WHERE w.id = ANY (p_ids)
        FOR UPDATE OF w SKIP LOCKED
    ) h;
  IF cardinality(o_ids) < cardinality(p_ids) THEN
    SELECT array_agg(w.id) INTO o_busy FROM "millrace"."webhooks" w
      JOIN unnest(p_ids, p_tokens) AS l (id, token) ON l.id = w.id AND l.token = w.lease_token
      WHERE w.id = ANY (p_ids) AND w.id NOT IN (SELECT h.id FROM unnest(o_ids) AS h (id));
    o_lost := ARRAY(
      SELECT l.id FROM unnest(p_ids) AS l (id)
      EXCEPT SELECT h.id FROM unnest(o_ids || o_busy) AS h (id));
  END IF;
END
$$;
--> statement-breakpoint
-- Writes what is in trouble of webhooks that are held, and no longer is, and the attempt log. p_rows says how deliveries
-- shall be. p_promote names units whose head is gone: the next blocked delivery of each becomes the head, due at once.
-- Answers what is to be told of those that became dead, and were not. Planned for every call: sizes vary here.
CREATE FUNCTION "millrace"."write_deliveries"(
  p_ids text[],
  p_rows json,
  p_promote json,
  p_log json,
  OUT o_keys text[],
  OUT o_data text[]
)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET plan_cache_mode = force_custom_plan SET jit = off AS $$
BEGIN
  INSERT INTO "millrace"."attempts" (webhook_id, "offset", attempt, at, duration_ms, outcome, status, error, answer)
    SELECT a.id, a."offset", a.attempt, clock_timestamp(), a."durationMs", a.outcome, a.status, a.error, a.answer
      FROM json_to_recordset(coalesce(p_log, '[]')) AS a (
        id text, "offset" bigint, attempt integer, "durationMs" integer, outcome text,
        status integer, error text, answer text)
      JOIN unnest(p_ids) AS h (id) ON h.id = a.id;
  WITH held AS MATERIALIZED (
    SELECT w.id, w.stream_id FROM "millrace"."webhooks" w WHERE w.id = ANY (p_ids)
  ), wanted AS MATERIALIZED (
    SELECT r.* FROM json_to_recordset(coalesce(p_rows, '[]')) AS r (
      id text, "offset" bigint, unit text, state text, attempts integer, delay bigint,
      status integer, error text, answer text)
      JOIN held h ON h.id = r.id
  ), head AS MATERIALIZED (
    -- The lowest that is left of the unit, be it in the table or among the rows of this call. If it is not blocked, an
    -- earlier call has seen to it already.
    SELECT p.id, least(
        (SELECT min(d."offset") FROM "millrace"."deliveries" d
          WHERE d.webhook_id = p.id AND d.unit = p.unit AND d.state <> 'dead'
            AND NOT EXISTS (SELECT 1 FROM wanted r WHERE r.id = d.webhook_id AND r."offset" = d."offset")),
        (SELECT min(r."offset") FROM wanted r
          WHERE r.id = p.id AND r.unit = p.unit AND r.state IN ('retrying', 'blocked'))) AS "offset"
      FROM json_to_recordset(coalesce(p_promote, '[]')) AS p (id text, unit text)
      JOIN held h ON h.id = p.id
  ), changed AS MATERIALIZED (
    SELECT r.id, r."offset", r.unit, r.attempts, r.status, r.error, r.answer,
        CASE WHEN r.state = 'blocked' AND h.id IS NOT NULL THEN 'retrying' ELSE r.state END AS state, r.delay
      FROM wanted r LEFT JOIN head h ON h.id = r.id AND h."offset" = r."offset"
  ), gone AS (
    DELETE FROM "millrace"."deliveries" d USING changed r
      WHERE d.webhook_id = r.id AND d."offset" = r."offset" AND r.state = 'gone'
  ), written AS (
    INSERT INTO "millrace"."deliveries" AS d (
        webhook_id, "offset", unit, state, attempts, due_at, last_status, last_error, last_answer)
      SELECT r.id, r."offset", r.unit, r.state, r.attempts,
          CASE WHEN r.state = 'retrying' THEN clock_timestamp() + r.delay * interval '1 millisecond' END,
          r.status, r.error, r.answer
        FROM changed r WHERE r.state <> 'gone'
      ON CONFLICT (webhook_id, "offset") DO UPDATE SET
        state = excluded.state, attempts = excluded.attempts, due_at = excluded.due_at,
        last_status = excluded.last_status, last_error = excluded.last_error,
        last_answer = excluded.last_answer, updated_at = clock_timestamp()
  ), promotion AS MATERIALIZED (
    -- which heads stand in the table already is told apart first: a sub-select on the update could not be rechecked
    SELECT d.webhook_id, d."offset" FROM "millrace"."deliveries" d
      JOIN head h ON h.id = d.webhook_id AND h."offset" = d."offset"
      WHERE d.state = 'blocked'
        AND NOT EXISTS (SELECT 1 FROM changed r WHERE r.id = d.webhook_id AND r."offset" = d."offset")
  ), promoted AS (
    UPDATE "millrace"."deliveries" d
      SET state = 'retrying', due_at = clock_timestamp(), updated_at = clock_timestamp()
      FROM promotion p
      WHERE d.webhook_id = p.webhook_id AND d."offset" = p."offset"
  )
  -- A webhook that listens to the operational stream itself is spared what its deliveries bring about: each such event
  -- would be one more delivery that may fail.
  SELECT array_agg(r.id ORDER BY r.id, r."offset"),
      array_agg(json_build_object('webhookId', r.id, 'stream', s.name, 'offset', r."offset", 'type', e.type,
        'key', e.key, 'attempts', r.attempts, 'status', r.status, 'error', r.error)::text ORDER BY r.id, r."offset")
    INTO o_keys, o_data
    FROM changed r JOIN held h ON h.id = r.id
    JOIN "millrace"."streams" s ON s.id = h.stream_id AND s.name <> 'millrace.webhooks'
    LEFT JOIN "millrace"."events" e ON e.stream_id = h.stream_id AND e."offset" = r."offset"
    WHERE r.state = 'dead' AND NOT EXISTS (
      SELECT 1 FROM "millrace"."deliveries" d
      WHERE d.webhook_id = r.id AND d."offset" = r."offset" AND d.state = 'dead');
END
$$;
--> statement-breakpoint
-- Writes how webhooks that are held stand: how far they came, whether they work, whether the lease goes on or back.
-- p_flags is a sum: 1 gives the lease back, 2 renews it, 4 says that it has as much in trouble as it may, 8 that an
-- attempt has succeeded, 16 that the last one has failed, 32 that something of it in trouble was written. p_disable
-- has the reasons of those to be disabled, by id.
-- Answers how those stand then of which there is news to the caller, as JSON: that are no longer active, have a retry
-- to come, or another fence than p_fences knows; and what is to be told: that one works again, or was disabled.
CREATE FUNCTION "millrace"."write_webhooks"(
  p_held_ids text[],
  p_unwell text[],
  p_states text[],
  p_failing_since timestamptz[],
  p_disable_after timestamptz[],
  p_ids text[],
  p_offsets bigint[],
  p_flags integer[],
  p_fences bigint[],
  p_disable json,
  p_lease_ms integer,
  OUT o_news text,
  OUT o_types text[],
  OUT o_keys text[],
  OUT o_data text[]
)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET enable_nestloop = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  -- a webhook on which every attempt has failed for so long is disabled
  v_failing_limit CONSTANT interval := interval '5 days';
  v_lease CONSTANT interval := p_lease_ms * interval '1 millisecond';
BEGIN
  WITH lane AS MATERIALIZED (
    SELECT l.id, l."offset", l.fence, l.flags & 1 <> 0 AS release, l.flags & 2 <> 0 AS renew,
        l.flags & 4 <> 0 AS saturated, l.flags & 8 <> 0 AS succeeded, l.flags & 16 <> 0 AS failed,
        l.flags & 32 <> 0 AS troubled,
        p_disable ->> l.id AS disable, coalesce(h.state, 'active') AS was, h.failing_since AS failed_since,
        p_disable ->> l.id IS NOT NULL OR (l.flags & 24 = 16 AND h.disable_after < clock_timestamp()) AS over
      FROM unnest(p_ids, p_offsets, p_flags, p_fences) AS l (id, "offset", flags, fence)
      LEFT JOIN unnest(p_unwell, p_states, p_failing_since, p_disable_after)
        AS h (id, state, failing_since, disable_after) ON h.id = l.id
  ), flushed AS (
    UPDATE "millrace"."webhooks" w SET
        "offset" = greatest(w."offset", l."offset"),
        saturated = l.saturated,
        lease_token = CASE WHEN l.release THEN NULL ELSE w.lease_token END,
        -- An end that stays spares the indexes. One that is near does not stay: a claim that saw it pass knows less than
        -- what is written here, and must find the row changed.
        lease_until = CASE WHEN l.release THEN NULL
          WHEN l.renew OR w.lease_until < clock_timestamp() + v_lease / 2 THEN clock_timestamp() + v_lease
          ELSE w.lease_until END,
        -- one that has no retry to come gets none by getting on
        due_at = CASE WHEN w.due_at IS NOT NULL OR l.troubled THEN (
          SELECT d.due_at FROM "millrace"."deliveries" d
            WHERE d.webhook_id = w.id AND d.state = 'retrying' ORDER BY d.due_at LIMIT 1) END,
        failing_since = CASE
          WHEN l.succeeded AND NOT l.failed THEN NULL
          WHEN l.succeeded THEN clock_timestamp()
          WHEN l.failed THEN coalesce(w.failing_since, clock_timestamp())
          ELSE w.failing_since END,
        disable_after = CASE
          -- whoever enables it again gives it its five days anew
          WHEN l.over OR (l.succeeded AND NOT l.failed) THEN NULL
          WHEN l.succeeded THEN clock_timestamp() + v_failing_limit
          WHEN l.failed THEN coalesce(w.disable_after, clock_timestamp() + v_failing_limit)
          ELSE w.disable_after END,
        state = CASE WHEN w.state = 'active' AND l.over THEN 'disabled' ELSE w.state END,
        state_reason = CASE WHEN w.state <> 'active' THEN w.state_reason ELSE coalesce(l.disable,
          CASE WHEN l.over THEN 'every attempt has failed for 5 days' END, w.state_reason) END,
        updated_at = CASE WHEN w.state = 'active' AND l.over THEN clock_timestamp() ELSE w.updated_at END
      FROM lane l
      WHERE w.id = ANY (p_held_ids) AND w.id = l.id
      RETURNING w.id, w.stream_id, w.state, w.state_reason, w.due_at, w.lease_fence, l.fence, l.failed_since,
        CASE WHEN l.was = 'active' AND w.state = 'disabled' THEN 'webhook.disabled'
          WHEN l.failed_since IS NOT NULL AND l.succeeded AND NOT l.failed AND NOT l.over
          THEN 'webhook.recovered' END AS news
  ), told AS (
    -- of what a webhook on the operational stream itself brings about, only its end, and that once
    SELECT f.id, f.news, CASE f.news
        WHEN 'webhook.disabled' THEN json_build_object('webhookId', f.id, 'stream', s.name, 'reason', f.state_reason)
        ELSE json_build_object('webhookId', f.id, 'stream', s.name, 'failingSince',
          to_char(f.failed_since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) END AS data
      FROM flushed f JOIN "millrace"."streams" s ON s.id = f.stream_id
      WHERE f.news = 'webhook.disabled' OR (f.news IS NOT NULL AND s.name <> 'millrace.webhooks')
  )
  SELECT
      (SELECT coalesce(json_agg(json_build_object('webhookId', f.id, 'state', f.state, 'fence', f.lease_fence,
        'dueInMs', ceil(extract(epoch FROM f.due_at - clock_timestamp()) * 1000))), '[]')
        FROM flushed f WHERE f.state <> 'active' OR f.due_at IS NOT NULL OR f.lease_fence <> f.fence)::text,
      (SELECT array_agg(t.news) FROM told t),
      (SELECT array_agg(t.id) FROM told t),
      (SELECT array_agg(t.data::text) FROM told t)
    INTO o_news, o_types, o_keys, o_data;
END
$$;
--> statement-breakpoint
-- Writes the outcomes of many webhooks: offsets, deliveries in trouble, attempt log, leases; what an operator should
-- know of it goes to the operational stream. p_ids to p_fences have an entry for each webhook, and mean what they mean
-- to write_webhooks. Each one's part is guarded by its lease's token, so that a worker that lost its lease changes
-- nothing. Nothing is written of o_lost, who lost it, nor of o_busy, which someone else is changing at this moment; of
-- the others o_news says how they stand, where that is news. All three are JSON.
CREATE FUNCTION "millrace"."flush_outcomes"(
  p_ids text[],
  p_tokens uuid[],
  p_offsets bigint[],
  p_flags integer[],
  p_fences bigint[],
  p_disable json,
  p_rows json,
  p_promote json,
  p_log json,
  p_lease_ms integer,
  OUT o_news text,
  OUT o_busy text,
  OUT o_lost text
)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_held record;
  v_dead record;
  v_now record;
  v_types text[];
  v_told integer;
BEGIN
  SELECT * INTO v_held FROM "millrace"."hold_webhooks"(p_ids, p_tokens);
  SELECT '{}'::text[] AS o_keys, '{}'::text[] AS o_data INTO v_dead;
  IF coalesce(p_rows, p_promote, p_log) IS NOT NULL THEN
    SELECT * INTO v_dead
      FROM "millrace"."write_deliveries"(v_held.o_ids, p_rows, p_promote, p_log);
  END IF;
  SELECT * INTO v_now FROM "millrace"."write_webhooks"(
    v_held.o_ids, v_held.o_unwell, v_held.o_states, v_held.o_failing_since, v_held.o_disable_after,
    p_ids, p_offsets, p_flags, p_fences, p_disable, p_lease_ms);
  v_types := array_fill('webhook.exhausted'::text, ARRAY[coalesce(cardinality(v_dead.o_keys), 0)]) || v_now.o_types;
  IF cardinality(v_types) > 0 THEN
    SELECT a.o_stream_id INTO v_told FROM "millrace"."append"(
      'millrace.webhooks', v_types, v_dead.o_keys || v_now.o_keys, v_dead.o_data || v_now.o_data,
      array_fill(NULL::text, ARRAY[cardinality(v_types)]), NULL, NULL) a;
    PERFORM "millrace"."wake_stream"(v_told);
  END IF;
  o_news := v_now.o_news;
  o_busy := array_to_json(coalesce(v_held.o_busy, '{}'));
  o_lost := array_to_json(coalesce(v_held.o_lost, '{}'));
END
$$;
--> statement-breakpoint
-- Room on each page for another version of every row: how far a webhook came is written where the row is, and no index
-- is told.
ALTER TABLE "millrace"."webhooks" SET (fillfactor = 50);
