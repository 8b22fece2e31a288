-- The task queue: the ends of attempts, a worker's round trip, cancelling, and recovery of tasks whose worker died.

-- Ends attempts. The arrays run in parallel: verb is `done`, `fail`, `retry`, `postpone`, `wait` (as postpone, but not counted: nothing was
-- tried) or `release` (given back as it was, by a worker that stops); `wait` is in seconds (retry, postpone, wait), `due` a time instead
-- (postpone, wait), `ran` how many seconds the handler took; `codes` and `hosts` say why a task is postponed (postpone, wait). An array
-- that is null is one of nulls, and no verb means `done`.
-- Only attempts that this worker still owns are touched (I4); returned are those, with the status they have now.
-- The caller may have written other things in the same transaction: all of it commits together.
CREATE FUNCTION finish_tasks(worker text, ids bigint[], attempts integer[], verbs text[], reasons text[], results jsonb[],
                             wait double precision[], due timestamptz[], ran double precision[], codes text[] DEFAULT NULL,
                             hosts text[] DEFAULT NULL)
RETURNS TABLE (id bigint, status text) LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
  postponements CONSTANT integer := 50;
  at CONSTANT timestamptz := clock_timestamp();
  stores integer[];
  freed text[];
  more_stores integer[];
  more_freed text[];
  gone bigint[];
  outcomes text[];
BEGIN
  IF verbs && ARRAY['retry', 'postpone', 'wait'] THEN
    -- An UPDATE frees the head slot without waiting for those who hold it to park behind it: lock as a DELETE would (I3).
    PERFORM FROM task_live t WHERE t.id = ANY (ids) AND t.worker_id = worker ORDER BY t.id FOR UPDATE OF t;
  END IF;
  PERFORM ensure_task_history_partition(at);
  WITH f AS MATERIALIZED (
    SELECT u.id, u.attempt, coalesce(u.verb, 'done') AS verb, u.reason, u.result, u.ran
      FROM unnest(ids, attempts, verbs, reasons, results, ran) u(id, attempt, verb, reason, result, ran)),
  d AS (
    -- No `state = 'a'` here: it would invite a scan of the whole active index. worker_id says as much.
    DELETE FROM task_live t USING f
     WHERE t.id = f.id AND t.worker_id = worker AND t.attempt = f.attempt
       AND (f.verb IN ('done', 'fail')
            OR (f.verb = 'retry' AND t.retry_count >= t.max_retries)
            OR (f.verb = 'postpone' AND t.postpone_count >= postponements AND t.retry_count >= t.max_retries))
    RETURNING t.*, f.verb, f.reason, f.result AS said, f.ran),
  h AS (
    INSERT INTO task_history (id, created_at, scheduled_for, claimed_at, started_at, completed_at, last_heartbeat_at, dispensary_id,
                              priority, attempt, retry_count, max_retries, postpone_count, role, platform, status, worker_id,
                              error_message, payload, result, earlier_attempts)
    SELECT d.id, d.created_at, d.scheduled_for, d.claimed_at,
           coalesce(d.started_at, greatest(d.claimed_at, at - make_interval(secs => coalesce(d.ran, 0)))), greatest(at, d.claimed_at, d.started_at),
           d.last_heartbeat_at, d.dispensary_id, d.priority, d.attempt, d.retry_count, d.max_retries, d.postpone_count, d.role, d.platform,
           CASE d.verb WHEN 'done' THEN 'completed' ELSE 'failed' END, d.worker_id,
           CASE WHEN d.verb <> 'done' THEN coalesce(nullif(d.reason, ''), 'no reason given') END, d.payload, coalesce(d.said, d.result), d.earlier_attempts
      FROM d)
  -- From `d` alone: a join of what was deleted with what was inserted would be a nested loop over both.
  SELECT array_agg(d.id), array_agg(CASE d.verb WHEN 'done' THEN 'completed' ELSE 'failed' END),
         array_agg(d.dispensary_id) FILTER (WHERE d.dispensary_id IS NOT NULL), array_agg(d.role) FILTER (WHERE d.dispensary_id IS NOT NULL)
    INTO gone, outcomes, stores, freed FROM d;
  RETURN QUERY SELECT * FROM unnest(gone, outcomes);

  IF coalesce(cardinality(gone), 0) < cardinality(ids) AND verbs && ARRAY['retry', 'postpone', 'wait', 'release'] THEN
    WITH f AS MATERIALIZED (
      SELECT u.id, u.attempt, u.verb, u.reason, u.result, u.code, u.host, u.ran,
             CASE u.verb WHEN 'retry' THEN at + make_interval(secs => greatest(coalesce(u.wait, 0), 0))
                         WHEN 'postpone' THEN coalesce(u.due, at + make_interval(secs => greatest(coalesce(u.wait, 0), 0)))
                         WHEN 'wait' THEN coalesce(u.due, at + make_interval(secs => greatest(coalesce(u.wait, 0), 0))) END AS due
        FROM unnest(ids, attempts, verbs, reasons, results, wait, due, ran, codes, hosts)
             u(id, attempt, verb, reason, result, wait, due, ran, code, host)
       WHERE u.verb IN ('retry', 'postpone', 'wait', 'release')),
    b AS (
      UPDATE task_live t
         SET state = CASE WHEN f.due > at THEN 's' ELSE 'r' END::"char",
             scheduled_for = CASE WHEN f.verb = 'release' THEN t.scheduled_for ELSE f.due END,
             retry_count = t.retry_count + CASE WHEN f.verb = 'retry' OR (f.verb = 'postpone' AND t.postpone_count >= postponements) THEN 1 ELSE 0 END,
             postpone_count = t.postpone_count + CASE WHEN f.verb = 'postpone' AND t.postpone_count < postponements THEN 1 ELSE 0 END,
             error_message = CASE WHEN f.verb = 'release' THEN t.error_message ELSE f.reason END,
             postpone_code = CASE WHEN f.verb IN ('postpone', 'wait') THEN coalesce(f.code, 'other') END,
             postpone_host = CASE WHEN f.verb IN ('postpone', 'wait') THEN f.host END,
             result = coalesce(f.result, t.result),
             earlier_attempts = task_attempts_with(t, at, CASE f.verb WHEN 'retry' THEN 'retried' WHEN 'release' THEN 'released' ELSE 'postponed' END,
                                                   f.reason, f.ran),
             aged = CASE WHEN f.verb IN ('release', 'wait') THEN t.aged ELSE 0 END,
             worker_id = NULL, claimed_at = NULL, started_at = NULL, last_heartbeat_at = NULL, updated_at = at
        FROM f WHERE t.id = f.id AND t.worker_id = worker AND t.attempt = f.attempt
      RETURNING t.id, t.dispensary_id, t.role)
    SELECT array_agg(b.id), array_agg(b.dispensary_id) FILTER (WHERE b.dispensary_id IS NOT NULL),
           array_agg(b.role) FILTER (WHERE b.dispensary_id IS NOT NULL)
      INTO gone, more_stores, more_freed FROM b;
    RETURN QUERY SELECT x, 'pending' FROM unnest(gone) x;
    IF more_stores IS NOT NULL THEN
      PERFORM task_promote_parked(more_stores, more_freed);
      PERFORM task_reorder(more_stores, more_freed);
    END IF;
  END IF;
  IF stores IS NOT NULL THEN PERFORM task_promote_next(stores, freed); END IF;
END $$;

-- One round trip of a worker: ends attempts (as finish_tasks), adds what follows from those that were still its own (as enqueue_tasks;
-- `parents` names the task that each follows from), and claims up to `n` more (as task_claim). One transaction: all of it or nothing.
-- The answer: the tasks claimed; before them, where there are any, a row without id whose `lost` are the ids that were no longer its own;
-- after them, where more were requested, one whose `next_due` is in how many seconds the next scheduled task comes due (null: none is).
CREATE FUNCTION cycle_tasks(worker text,
                            ids bigint[], attempts integer[], verbs text[], reasons text[], results jsonb[], wait double precision[],
                            due timestamptz[], ran double precision[],
                            parents bigint[], then_roles text[], then_stores integer[], then_priorities integer[], then_payloads jsonb[],
                            then_due timestamptz[], then_platforms text[], then_retries integer[], then_alone boolean[],
                            roles text[], n integer, fair integer, low integer[], since timestamptz[], past bigint[],
                            codes text[] DEFAULT NULL, hosts text[] DEFAULT NULL)
RETURNS TABLE (id bigint, role text, dispensary_id integer, platform text, priority integer, aged smallint, scheduled_for timestamptz,
               claimed_at timestamptz, retry_count integer, max_retries integer, payload jsonb, created_at timestamptz, attempt integer,
               postpone_count integer, result jsonb, error_message text, lost bigint[], next_due double precision)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  ended bigint[];
  missing bigint[];
  u record;
  got integer;
BEGIN
  IF cardinality(ids) > 0 THEN
    SELECT array_agg(f.id) INTO ended FROM finish_tasks(worker, ids, attempts, verbs, reasons, results, wait, due, ran, codes, hosts) f;
    IF coalesce(cardinality(ended), 0) < cardinality(ids) THEN
      SELECT array_agg(x) INTO missing FROM unnest(ids) x WHERE x <> ALL (coalesce(ended, '{}'));
    END IF;
    IF cardinality(parents) > 0 THEN
      IF missing IS NOT NULL THEN
        SELECT array_agg(x.role) AS r, array_agg(x.store) AS s, array_agg(x.priority) AS p, array_agg(x.payload) AS j, array_agg(x.due) AS d,
               array_agg(x.platform) AS f, array_agg(x.retries) AS m, array_agg(x.alone) AS a INTO u
          FROM unnest(parents, then_roles, then_stores, then_priorities, then_payloads, then_due, then_platforms, then_retries, then_alone)
               x(parent, role, store, priority, payload, due, platform, retries, alone)
         WHERE x.parent <> ALL (missing);
        PERFORM enqueue_tasks(u.r, u.s, u.p, u.j, u.d, u.f, u.m, u.a, false);
      ELSE
        PERFORM enqueue_tasks(then_roles, then_stores, then_priorities, then_payloads, then_due, then_platforms, then_retries, then_alone, false);
      END IF;
    END IF;
    IF missing IS NOT NULL THEN
      lost := missing;
      RETURN NEXT;
    END IF;
  END IF;
  IF n > 0 THEN
    PERFORM task_before_claim(worker);
    RETURN QUERY
      SELECT c.id, c.role, c.dispensary_id, c.platform, c.priority, c.aged, c.scheduled_for, c.claimed_at, c.retry_count, c.max_retries,
             nullif(c.payload, '{}'), c.created_at, c.attempt, c.postpone_count, c.result, c.error_message, NULL::bigint[], NULL::double precision
        FROM task_claim(task_roles(roles), worker, n, fair, low, since, past) c;
    GET DIAGNOSTICS got = ROW_COUNT;
    IF got < n THEN
      id := NULL;
      lost := NULL;
      next_due := extract(epoch FROM (SELECT t.scheduled_for FROM task_live t WHERE t.state = 's' ORDER BY t.scheduled_for LIMIT 1)
                                     - clock_timestamp());
      RETURN NEXT;
    END IF;
  END IF;
END $$;

-- Cancels tasks that wait or run; returns the ids of those it found live. A worker that runs one loses it, and is notified.
CREATE FUNCTION cancel_tasks(ids bigint[], reason text DEFAULT 'cancelled') RETURNS SETOF bigint LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
  at CONSTANT timestamptz := clock_timestamp();
  gone bigint[];
  running bigint[];
  stores integer[];
  freed text[];
BEGIN
  PERFORM FROM task_live t WHERE t.id = ANY (ids) ORDER BY t.id FOR UPDATE OF t;
  PERFORM ensure_task_history_partition(at);
  WITH d AS (DELETE FROM task_live t WHERE t.id = ANY (ids) RETURNING t.*),
  h AS (
    INSERT INTO task_history (id, created_at, scheduled_for, claimed_at, started_at, completed_at, last_heartbeat_at, dispensary_id,
                              priority, attempt, retry_count, max_retries, postpone_count, role, platform, status, worker_id,
                              error_message, payload, result, earlier_attempts)
    SELECT d.id, d.created_at, d.scheduled_for, d.claimed_at, d.started_at, greatest(at, d.claimed_at, d.started_at), d.last_heartbeat_at,
           d.dispensary_id, d.priority, d.attempt, d.retry_count, d.max_retries, d.postpone_count, d.role, d.platform, 'cancelled',
           d.worker_id, coalesce(nullif(reason, ''), 'cancelled'), d.payload, d.result, d.earlier_attempts
      FROM d)
  SELECT array_agg(d.id), array_agg(d.id) FILTER (WHERE d.state = 'a'),
         array_agg(d.dispensary_id) FILTER (WHERE d.state IN ('r', 'a') AND d.dispensary_id IS NOT NULL),
         array_agg(d.role) FILTER (WHERE d.state IN ('r', 'a') AND d.dispensary_id IS NOT NULL)
    INTO gone, running, stores, freed FROM d;
  IF stores IS NOT NULL THEN PERFORM task_promote_parked(stores, freed); END IF;
  IF running IS NOT NULL THEN PERFORM pg_notify('menuwatch_tasks', 'lost ' || x) FROM unnest(running) x; END IF;
  RETURN QUERY SELECT unnest(gone);
END $$;
