-- Reads a stream after an offset, up to the horizon. The first row is a header: o_horizon, and in
-- o_offset the last number drawn in this database; for a filtered read o_running tells up to where
-- the events were looked at. The others are events in order, with the running sum of their stored
-- sizes in o_running; the page ends with the first event that reaches p_max_bytes.
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
  o_running bigint
)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_stream_id integer;
  v_horizon bigint;
  v_last bigint;
  v_scanned bigint;
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION 'streams are read at READ COMMITTED only' USING ERRCODE = 'MR001';
  END IF;
  SELECT s.id INTO v_stream_id FROM "millrace"."streams" s WHERE s.name = p_stream;
  IF NOT FOUND THEN
    -- Not a horizon of last_offset(): the stream may be committing its first events right now.
    o_horizon := 0;
    o_offset := "millrace"."last_offset"();
    o_running := 0;
    RETURN NEXT;
    RETURN;
  END IF;

  SELECT h.o_last, h.o_horizon INTO v_last, v_horizon FROM "millrace"."horizon"(v_stream_id) h;
  o_horizon := v_horizon;
  o_offset := v_last;
  o_running := v_horizon;

  IF p_types IS NULL AND p_type_patterns IS NULL THEN
    RETURN NEXT;
    RETURN QUERY
      SELECT NULL::bigint, page."offset", page.type, page.key, page.data::text, page.headers::text,
             page.published_at, page.running
        FROM (
          SELECT e.*, sum(pg_column_size(e.data)) OVER (ORDER BY e."offset") AS running,
                 pg_column_size(e.data) AS size
            FROM "millrace"."events" e
            WHERE e.stream_id = v_stream_id AND e."offset" > p_after AND e."offset" <= v_horizon
            ORDER BY e."offset"
            LIMIT p_limit
        ) page
        WHERE page.running - page.size < p_max_bytes
        ORDER BY page."offset";
    RETURN;
  END IF;

  -- A filter that matches little must not scan a stream of millions in one go.
  SELECT max(s."offset") INTO v_scanned
    FROM (
      SELECT e."offset" FROM "millrace"."events" e
        WHERE e.stream_id = v_stream_id AND e."offset" > p_after AND e."offset" <= v_horizon
        ORDER BY e."offset"
        LIMIT p_scan_limit
    ) s
    HAVING count(*) >= p_scan_limit;
  o_running := coalesce(v_scanned, v_horizon);
  RETURN NEXT;
  RETURN QUERY
    SELECT NULL::bigint, page."offset", page.type, page.key, page.data::text, page.headers::text,
           page.published_at, page.running
      FROM (
        SELECT e.*, sum(pg_column_size(e.data)) OVER (ORDER BY e."offset") AS running,
               pg_column_size(e.data) AS size
          FROM "millrace"."events" e
          WHERE e.stream_id = v_stream_id AND e."offset" > p_after
            AND e."offset" <= coalesce(v_scanned, v_horizon)
            AND (e.type = ANY (p_types) OR e.type LIKE ANY (p_type_patterns))
          ORDER BY e."offset"
          LIMIT p_limit
      ) page
      WHERE page.running - page.size < p_max_bytes
      ORDER BY page."offset";
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
