-- Reads a stream after an offset, up to the horizon. The first row is a header: o_horizon; in o_offset the
-- last number drawn in this database; in o_running the offset of the last event that a filtered read
-- looked at, and in o_more whether it stopped there before the end; in o_held whether there is something
-- committed above the horizon, held back by a transaction that is still open. When that one rolls back
-- nobody is woken, so whoever follows the stream has to look again. The others are events in order; the page
-- ends with the first event by which their sizes reach p_max_bytes, and if that may be, o_running has the
-- running sum.
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
  o_horizon bigint,
  o_offset bigint,
  o_type text,
  o_key text,
  o_data text,
  o_headers text,
  o_published_at timestamptz,
  o_running bigint,
  o_more boolean,
  o_held boolean
)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_stream_id integer;
  v_horizon bigint;
  v_through bigint;
  v_bytes bigint;
  v_packed boolean;
  v_event record;
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION 'streams are read at READ COMMITTED only' USING ERRCODE = 'MR001';
  END IF;
  o_running := 0;
  o_more := false;
  o_held := false;
  SELECT s.id INTO v_stream_id FROM "millrace"."streams" s WHERE s.name = p_stream;
  IF NOT FOUND THEN
    -- Not a horizon of last_offset(): the stream may be committing its first events right now.
    o_horizon := 0;
    o_offset := "millrace"."last_offset"();
    RETURN NEXT;
    RETURN;
  END IF;

  -- steps 1 and 2
  SELECT h.o_last, h.o_horizon INTO o_offset, v_horizon FROM "millrace"."horizon"(v_stream_id) h;
  -- step 3
  o_horizon := v_horizon;
  v_through := v_horizon;
  IF v_horizon < o_offset THEN
    o_held := EXISTS (
      SELECT 1 FROM "millrace"."events" e
        WHERE e.stream_id = v_stream_id AND e."offset" > greatest(v_horizon, p_after));
  END IF;
  -- A filter that matches little must not scan a stream of millions in one go.
  IF p_types IS NOT NULL OR p_type_patterns IS NOT NULL THEN
    SELECT coalesce(max(s."offset"), 0), count(*) >= p_scan_limit INTO o_running, o_more
      FROM (
        SELECT e."offset" FROM "millrace"."events" e
          WHERE e.stream_id = v_stream_id AND e."offset" > p_after AND e."offset" <= v_horizon
          ORDER BY e."offset"
          LIMIT p_scan_limit
      ) s;
    v_through := o_running;
  END IF;
  RETURN NEXT;

  -- step 4. What is stored as it is has its size at hand: mostly a page is far too small to be cut.
  o_horizon := NULL;
  o_more := NULL;
  o_held := NULL;
  SELECT coalesce(sum(s.size), 0), coalesce(bool_or(s.packed), false) INTO v_bytes, v_packed
    FROM (
      SELECT pg_column_size(e.data) + coalesce(pg_column_size(e.headers), 0) AS size,
             pg_column_compression(e.data) IS NOT NULL OR pg_column_compression(e.headers) IS NOT NULL AS packed
        FROM "millrace"."events" e
        WHERE e.stream_id = v_stream_id AND e."offset" > p_after AND e."offset" <= v_through
          AND (p_types IS NULL AND p_type_patterns IS NULL
               OR e.type = ANY (p_types) OR e.type LIKE ANY (p_type_patterns))
        ORDER BY e."offset"
        LIMIT p_limit
    ) s;
  IF NOT v_packed AND v_bytes < p_max_bytes THEN
    RETURN QUERY
      SELECT NULL::bigint, e."offset", e.type, e.key, e.data::text, e.headers::text, e.published_at,
             NULL::bigint, NULL::boolean, NULL::boolean
        FROM "millrace"."events" e
        WHERE e.stream_id = v_stream_id AND e."offset" > p_after AND e."offset" <= v_through
          AND (p_types IS NULL AND p_type_patterns IS NULL
               OR e.type = ANY (p_types) OR e.type LIKE ANY (p_type_patterns))
        ORDER BY e."offset"
        LIMIT p_limit;
    RETURN;
  END IF;

  -- A loop, so that of events that are stored compressed no more are unpacked than the page holds.
  v_bytes := 0;
  FOR v_event IN
    SELECT e."offset", e.type, e.key, e.data, e.headers, e.published_at
      FROM "millrace"."events" e
      WHERE e.stream_id = v_stream_id AND e."offset" > p_after AND e."offset" <= v_through
        AND (p_types IS NULL AND p_type_patterns IS NULL
             OR e.type = ANY (p_types) OR e.type LIKE ANY (p_type_patterns))
      ORDER BY e."offset"
      LIMIT p_limit
  LOOP
    o_offset := v_event."offset";
    o_type := v_event.type;
    o_key := v_event.key;
    o_data := v_event.data::text;
    o_headers := v_event.headers::text;
    o_published_at := v_event.published_at;
    v_bytes := v_bytes + octet_length(o_data) + coalesce(octet_length(o_headers), 0);
    o_running := v_bytes;
    RETURN NEXT;
    EXIT WHEN v_bytes >= p_max_bytes;
  END LOOP;
END
$$;
--> statement-breakpoint
-- The offset after which the events of a stream begin that were appended at or after a time: found by
-- halving, since times ascend with offsets but for transactions that took long.
CREATE FUNCTION "millrace"."offset_at"(p_stream_id integer, p_time timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
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
