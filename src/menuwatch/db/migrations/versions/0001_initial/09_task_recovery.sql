-- The task queue: heartbeats, and recovery of stale tasks (00_stale_and_alive.sql).

-- Beats for every task that a worker holds and answers with those it still owns. A row that is locked is being settled by its owner or
-- taken away: it is passed over rather than waited for. `ran` is how long each has been running, in seconds: a task shows as running from
-- the first beat after its start.
CREATE FUNCTION beat_tasks(worker text, ids bigint[], attempts integer[], ran double precision[])
RETURNS TABLE (id bigint, attempt integer) LANGUAGE sql AS $$
  WITH f AS MATERIALIZED (
    SELECT * FROM unnest(ids, attempts, ran) u(id, attempt, ran)),
  free AS MATERIALIZED (
    SELECT t.id, f.ran FROM f JOIN task_live t ON t.id = f.id AND t.attempt = f.attempt
     WHERE t.worker_id = worker FOR NO KEY UPDATE OF t SKIP LOCKED),
  beat AS (
    UPDATE task_live t
       SET last_heartbeat_at = clock_timestamp(), updated_at = clock_timestamp(),
           started_at = coalesce(t.started_at, greatest(t.claimed_at, clock_timestamp() - make_interval(secs => free.ran)))
      FROM free WHERE t.id = free.id RETURNING t.id)
  SELECT f.id, f.attempt FROM f JOIN task_live t ON t.id = f.id AND t.attempt = f.attempt WHERE t.worker_id = worker
$$;

-- Takes tasks back from workers that have been silent for longer than this many minutes: to pending, using up a retry, or, out of
-- retries, to failed. Returns how many.
CREATE FUNCTION recover_stale_tasks(threshold_minutes numeric DEFAULT 10) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  at CONSTANT timestamptz := clock_timestamp();
  stale bigint[];
  stores integer[];
  freed text[];
  returned_stores integer[];
  returned text[];
BEGIN
  IF threshold_minutes IS NULL OR threshold_minutes < 0 THEN
    RAISE EXCEPTION 'threshold_minutes must not be negative, got %', threshold_minutes USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- A worker that is committing an outcome right now is not silent: its row is locked, and passed over.
  SELECT array_agg(s.id) INTO stale FROM (
    SELECT t.id FROM task_live t
     WHERE t.state = 'a' AND coalesce(t.last_heartbeat_at, t.claimed_at) < at - make_interval(secs => threshold_minutes::double precision * 60)
     FOR UPDATE OF t SKIP LOCKED) s;
  IF stale IS NULL THEN RETURN 0; END IF;
  PERFORM ensure_task_history_partition(at);
  WITH d AS (DELETE FROM task_live t WHERE t.id = ANY (stale) AND t.retry_count >= t.max_retries RETURNING t.*),
  h AS (
    INSERT INTO task_history (id, created_at, scheduled_for, claimed_at, started_at, completed_at, last_heartbeat_at, dispensary_id,
                              priority, attempt, retry_count, max_retries, postpone_count, role, platform, status, worker_id,
                              error_message, payload, result, earlier_attempts)
    SELECT d.id, d.created_at, d.scheduled_for, d.claimed_at, d.started_at, greatest(at, d.claimed_at, d.started_at), d.last_heartbeat_at,
           d.dispensary_id, d.priority, d.attempt, d.retry_count, d.max_retries, d.postpone_count, d.role, d.platform, 'failed', d.worker_id,
           format('worker %s fell silent at %s, and no retry is left', d.worker_id, coalesce(d.last_heartbeat_at, d.claimed_at)), d.payload, d.result, d.earlier_attempts
      FROM d)
  SELECT array_agg(d.dispensary_id) FILTER (WHERE d.dispensary_id IS NOT NULL), array_agg(d.role) FILTER (WHERE d.dispensary_id IS NOT NULL)
    INTO stores, freed FROM d;
  WITH b AS (
    UPDATE task_live t
       SET state = 'r', retry_count = t.retry_count + 1,
           earlier_attempts = task_attempts_with(t, at, 'lost', format('worker %s fell silent at %s', t.worker_id,
                                                                       coalesce(t.last_heartbeat_at, t.claimed_at)), NULL),
           error_message = format('worker %s fell silent at %s', t.worker_id, coalesce(t.last_heartbeat_at, t.claimed_at)),
           worker_id = NULL, claimed_at = NULL, started_at = NULL, last_heartbeat_at = NULL, updated_at = at
     WHERE t.id = ANY (stale)
    RETURNING t.dispensary_id, t.role)
  SELECT array_agg(b.dispensary_id) FILTER (WHERE b.dispensary_id IS NOT NULL), array_agg(b.role) FILTER (WHERE b.dispensary_id IS NOT NULL)
    INTO returned_stores, returned FROM b;
  IF stores IS NOT NULL THEN PERFORM task_promote_parked(stores, freed); END IF;
  IF returned_stores IS NOT NULL THEN PERFORM task_reorder(returned_stores, returned); END IF;
  PERFORM pg_notify('menuwatch_tasks', '');
  RETURN cardinality(stale);
END $$;
