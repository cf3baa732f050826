-- The first key of a stream's advisory locks. XOR keeps the streams of one schema apart without
-- exception; the hash keeps schemas (and other users of two-key advisory locks) apart.
CREATE FUNCTION "millrace"."stream_lock_key"(p_stream_id integer) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hashtext('"millrace"') # p_stream_id;
--> statement-breakpoint
-- The last number drawn from the event sequence, 0 before the first. Reading a sequence is not
-- transactional: it shows what every session has drawn so far.
CREATE FUNCTION "millrace"."last_offset"() RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN (SELECT CASE WHEN s.is_called THEN s.last_value ELSE s.last_value - 1 END FROM "millrace"."event_offset" s);
END
$$;
--> statement-breakpoint
-- Up to which offset every publish to the stream is decided (committed or gone).
--
-- The order is the proof. A publisher reads the sequence (L), takes a lock that shows L, and only
-- then draws its offsets, all of them above L; the lock goes after the commit is visible. So whoever
-- drew an offset <= o_last had its lock before step 1. If step 2 does not find it, the outcome is
-- already visible to any snapshot taken after step 2.
CREATE FUNCTION "millrace"."horizon"(p_stream_id integer, OUT o_last bigint, OUT o_horizon bigint)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_class oid := "millrace"."stream_lock_key"(p_stream_id)::oid;
  v_lowest bigint;
BEGIN
  IF pg_is_in_recovery() THEN
    RAISE EXCEPTION 'streams are read on the primary: a standby does not show the locks of publishers'
      USING ERRCODE = 'MR003';
  END IF;
  -- step 1
  o_last := "millrace"."last_offset"();
  -- step 2. The lock shows the low 31 bits of L. They are put back beside o_last: up to 2^20 above it
  -- (drawn since step 1), else below it. The own backend's locks do not count, its rows are visible
  -- to itself; a prepared transaction's lock has no pid and does.
  SELECT min(o_last + CASE
      WHEN raw.difference >= 1048576 THEN raw.difference - 2147483648
      WHEN raw.difference < 1048576 - 2147483648 THEN raw.difference + 2147483648
      ELSE raw.difference END)
    INTO v_lowest
    FROM pg_catalog.pg_locks l
    CROSS JOIN LATERAL (SELECT l.objid::bigint - (o_last & 2147483647) AS difference) raw
    WHERE l.locktype = 'advisory'
      AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
      AND l.classid = v_class
      AND l.objsubid = 2
      AND l.granted
      AND l.pid IS DISTINCT FROM pg_backend_pid();
  o_horizon := least(o_last, v_lowest);
END
$$;
