-- Publish outside a transaction, in one round trip: append, COMMIT, and only then notify, so that
-- the global lock of a notifying commit is not held while the data is written to disk. The second
-- commit has nothing to keep, as a wake does not outlive the server anyway: it waits for no disk. Inside a
-- transaction block it raises 2D000: there `append` and `wake_stream` are called.
CREATE PROCEDURE "millrace"."publish"(
  p_stream text,
  p_types text[],
  p_keys text[],
  p_data text[],
  p_headers text[],
  p_idempotency_key text,
  p_content_hash text,
  INOUT o_stream_id integer DEFAULT NULL,
  INOUT o_offsets bigint[] DEFAULT NULL,
  INOUT o_replayed boolean DEFAULT NULL
)
LANGUAGE plpgsql AS $$
BEGIN
  SELECT a.o_stream_id, a.o_offsets, a.o_replayed INTO o_stream_id, o_offsets, o_replayed
    FROM "millrace"."append"(p_stream, p_types, p_keys, p_data, p_headers, p_idempotency_key, p_content_hash) a;
  COMMIT;
  IF NOT o_replayed THEN
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM "millrace"."wake_stream"(o_stream_id);
  END IF;
END
$$;
