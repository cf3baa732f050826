-- Reads a stream after an offset, up to the horizon: events in order, and in the last row, whose type is NULL, what
-- there is to know about them. o_offset there is the last number drawn in this database; o_data is JSON: `horizon`;
-- `more`, whether the page ended before the stream did; `through`, how far a filtered read looked when all that it
-- found is in the page, else 0; `held`, whether something is committed above the horizon, where a transaction that is
-- still open holds it back. When that one rolls back nobody is woken, so whoever follows the stream has to look again.
--
-- The page ends with the first event by which the sizes of data and headers reach p_max_bytes. Times are microseconds
-- since 2000, as they are stored, in hex: nothing else is made and read as fast.
--
-- By the settings a page comes by the index, in its order. Where statistics make little of a stream, as they do of a new
-- one, the planner would rather gather all of it that is left, and sort it, for every page.
--
-- VOLATILE: each statement inside takes a fresh snapshot, so the SELECT sees every commit that the
-- horizon counts on. At REPEATABLE READ and above it would not, hence the refusal.
CREATE FUNCTION "millrace"."read_events"(
  p_stream text,
  p_after bigint,
  p_limit integer,
  p_types text[],
  p_type_patterns text[],
  p_max_bytes bigint,
  p_scan_limit integer
)
RETURNS TABLE (
  o_offset bigint,
  o_type text,
  o_key text,
  o_data text,
  o_headers text,
  o_published text
)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  v_stream_id integer;
  v_last bigint;
  v_horizon bigint := 0;
  v_held boolean := false;
  v_filtered boolean := p_types IS NOT NULL OR p_type_patterns IS NOT NULL;
  v_through bigint;
  v_scanned bigint := 0;
  v_more boolean := false;
  v_rows integer := 0;
  v_bytes bigint := 0;
  v_loop boolean;
  v_share bigint;
  v_data json;
  v_headers json;
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION 'streams are read at READ COMMITTED only' USING ERRCODE = 'MR001';
  END IF;
  SELECT s.id INTO v_stream_id FROM "millrace"."streams" s WHERE s.name = p_stream;
  IF v_stream_id IS NULL THEN
    -- Not a horizon of last_offset(): the stream may be committing its first events right now.
    v_last := "millrace"."last_offset"();
  ELSE
    -- steps 1 and 2
    SELECT h.o_last, h.o_horizon INTO v_last, v_horizon FROM "millrace"."horizon"(v_stream_id) h;
    -- step 3
    v_through := v_horizon;
    IF v_horizon < v_last THEN
      v_held := EXISTS (
        SELECT 1 FROM "millrace"."events" e
          WHERE e.stream_id = v_stream_id AND e."offset" > greatest(v_horizon, p_after));
    END IF;
    -- A filter that matches little must not scan a stream of millions in one go.
    IF v_filtered THEN
      SELECT coalesce(max(s."offset"), 0), count(*) >= p_scan_limit INTO v_scanned, v_more
        FROM (
          SELECT e."offset" FROM "millrace"."events" e
            WHERE e.stream_id = v_stream_id AND e."offset" > p_after AND e."offset" <= v_horizon
            ORDER BY e."offset"
            LIMIT p_scan_limit
        ) s;
      v_through := v_scanned;
    END IF;

    -- step 4. Mostly a page is far too small to be cut, which is so when no event has more than its share of
    -- p_max_bytes. Its size is at hand only where it is stored as it is: a few bytes may unpack to a hundred times
    -- as many. For a few events it is not worth asking.
    v_loop := v_through - p_after <= 100;
    IF NOT v_loop THEN
      v_share := p_max_bytes / greatest(p_limit, 1);
      v_loop := EXISTS (
        SELECT 1
          FROM (
            SELECT e.data, e.headers FROM "millrace"."events" e
              WHERE e.stream_id = v_stream_id AND e."offset" > p_after AND e."offset" <= v_through
                AND (NOT v_filtered OR e.type = ANY (p_types) OR e.type LIKE ANY (p_type_patterns))
              ORDER BY e."offset"
              LIMIT p_limit
          ) s
          WHERE pg_column_size(s.data) >= v_share OR pg_column_compression(s.data) IS NOT NULL
            OR s.headers IS NOT NULL AND (
              pg_column_size(s.data) + pg_column_size(s.headers) >= v_share
              OR pg_column_compression(s.headers) IS NOT NULL));
    END IF;
    IF NOT v_loop THEN
      RETURN QUERY
        SELECT e."offset", e.type, e.key, e.data::text, e.headers::text, encode(timestamptz_send(e.published_at), 'hex')
          FROM "millrace"."events" e
          WHERE e.stream_id = v_stream_id AND e."offset" > p_after AND e."offset" <= v_through
            AND (NOT v_filtered OR e.type = ANY (p_types) OR e.type LIKE ANY (p_type_patterns))
          ORDER BY e."offset"
          LIMIT p_limit;
      GET DIAGNOSTICS v_rows = ROW_COUNT;
    ELSE
      -- A loop, so that of events that are stored compressed no more are unpacked than the page holds.
      FOR o_offset, o_type, o_key, v_data, v_headers, o_published IN
        SELECT e."offset", e.type, e.key, e.data, e.headers, encode(timestamptz_send(e.published_at), 'hex')
          FROM "millrace"."events" e
          WHERE e.stream_id = v_stream_id AND e."offset" > p_after AND e."offset" <= v_through
            AND (NOT v_filtered OR e.type = ANY (p_types) OR e.type LIKE ANY (p_type_patterns))
          ORDER BY e."offset"
          LIMIT p_limit
      LOOP
        o_data := v_data;
        o_headers := v_headers;
        RETURN NEXT;
        v_rows := v_rows + 1;
        v_bytes := v_bytes + octet_length(o_data) + coalesce(octet_length(o_headers), 0);
        EXIT WHEN v_bytes >= p_max_bytes;
      END LOOP;
    END IF;
    IF v_rows >= p_limit OR v_bytes >= p_max_bytes THEN
      v_more := true;
      v_scanned := 0;
    END IF;
  END IF;

  o_offset := v_last;
  o_type := NULL;
  o_key := NULL;
  o_data := json_build_object('horizon', v_horizon, 'through', v_scanned, 'more', v_more, 'held', v_held);
  o_headers := NULL;
  o_published := NULL;
  RETURN NEXT;
END
$$;
--> statement-breakpoint
-- The offset after which the events of a stream begin that were appended at or after a time: found by
-- halving, since times ascend with offsets but for transactions that took long.
CREATE FUNCTION "millrace"."offset_at"(p_stream_id integer, p_time timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  v_low bigint := 0;
  v_high bigint;
  v_middle bigint;
  v_found bigint;
  v_time timestamptz;
BEGIN
  SELECT coalesce(max(e."offset"), 0) INTO v_high FROM "millrace"."events" e WHERE e.stream_id = p_stream_id;
  -- invariant: what is at or below v_low is older, what is above v_high is not
  WHILE v_low < v_high LOOP
    v_middle := (v_low + v_high) / 2;
    SELECT e."offset", e.published_at INTO v_found, v_time FROM "millrace"."events" e
      WHERE e.stream_id = p_stream_id AND e."offset" > v_middle
      ORDER BY e."offset" LIMIT 1;
    IF v_found IS NULL OR v_time >= p_time THEN
      v_high := v_middle;
    ELSE
      v_low := v_found;
    END IF;
  END LOOP;
  RETURN v_low;
END
$$;
