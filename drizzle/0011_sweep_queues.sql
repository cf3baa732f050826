-- What nobody's claim has done: leases that ran out in queues without a worker, finished messages past
-- their retention, dedupe keys past their window. At most p_limit of each kind and queue; o_more says
-- that another call has something left. Never waits for a lock. In a database of another environment
-- than p_environment it does nothing.
CREATE FUNCTION "millrace"."sweep_queues"(
  p_limit integer,
  p_environment text,
  OUT o_released bigint,
  OUT o_died bigint,
  OUT o_removed bigint,
  OUT o_forgotten bigint,
  OUT o_more boolean
)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_queue_id integer;
  v_released bigint;
  v_died bigint;
  v_count bigint;
BEGIN
  o_released := 0;
  o_died := 0;
  o_removed := 0;
  o_more := false;
  o_forgotten := 0;
  IF NOT EXISTS (
    SELECT FROM "millrace"."installation" i WHERE i.environment IS NOT DISTINCT FROM p_environment
  ) THEN
    RETURN;
  END IF;
  FOR v_queue_id IN SELECT q.id FROM "millrace"."queues" q ORDER BY q.id LOOP
    SELECT d.o_released, d.o_died INTO v_released, v_died FROM "millrace"."release_due"(v_queue_id, p_limit) d;
    IF v_released + v_died > 0 THEN
      PERFORM "millrace"."wake_queue"(v_queue_id);
    END IF;
    DELETE FROM "millrace"."messages" m
      WHERE m.id = ANY (ARRAY(
        SELECT f.id FROM "millrace"."messages" f
          WHERE f.queue_id = v_queue_id AND f.state = 'done' AND f.due_at <= v_now
          ORDER BY f.due_at
          LIMIT p_limit
          FOR UPDATE SKIP LOCKED
      ));
    GET DIAGNOSTICS v_count = ROW_COUNT;
    o_released := o_released + v_released;
    o_died := o_died + v_died;
    o_removed := o_removed + v_count;
    o_more := o_more OR v_released + v_died >= p_limit OR v_count >= p_limit;
  END LOOP;
  DELETE FROM "millrace"."dedupe_keys" k
    WHERE k.expires_at <= v_now AND (k.queue_id, k.key) IN (
      SELECT e.queue_id, e.key FROM "millrace"."dedupe_keys" e
        WHERE e.expires_at <= v_now
        ORDER BY e.expires_at
        LIMIT p_limit
        FOR UPDATE SKIP LOCKED
    );
  GET DIAGNOSTICS o_forgotten = ROW_COUNT;
  o_more := o_more OR o_forgotten >= p_limit;
END
$$;
