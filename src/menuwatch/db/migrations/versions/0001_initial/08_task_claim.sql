-- The task queue: claiming, and ageing of ready tasks.

-- Claims up to `n` tasks of the `wanted` roles: the one with the highest priority first, then the oldest; one task per store,
-- whatever its role. Each statement has a snapshot of its own, and the UPDATE runs while the stores' try-locks are held: it sees
-- every claim committed before, so two claimers never collide on task_active.
--
-- `fair` of them go to the role whose next task has waited longest, whatever its priority, so that no role starves another.
-- `low, since, past` are where to begin in each role's order (parallel to `wanted`; null: at its beginning). What was claimed stays in
-- the index until no snapshot can see it: while an old one is open, a claim from the beginning steps over all of it.
CREATE FUNCTION task_claim(wanted text[], worker text, n integer, fair integer, low integer[], since timestamptz[], past bigint[])
RETURNS SETOF task_live LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  want integer := n;
  got integer := 0;
  seen integer;
  more integer;
  window_size integer;
  misses integer := 0;
  heads bigint[];
  turn integer;
BEGIN
  IF low IS NULL THEN
    low := array_fill(-2147483648, ARRAY[cardinality(wanted)]);
    since := array_fill('-infinity'::timestamptz, ARRAY[cardinality(wanted)]);
    past := array_fill(0::bigint, ARRAY[cardinality(wanted)]);
  END IF;
  IF cardinality(wanted) > 1 THEN
    -- Roles that have nothing ready are left out: a claim of one role costs half of a merge. `turn` is the one that has waited longest.
    SELECT array_agg(f.role ORDER BY f.place), array_agg(low[f.place] ORDER BY f.place), array_agg(since[f.place] ORDER BY f.place),
           array_agg(past[f.place] ORDER BY f.place), (array_agg(f.number ORDER BY f.due, f.place))[1]
      INTO wanted, low, since, past, turn FROM (
        SELECT r.role, r.place, first.due, row_number() OVER (ORDER BY r.place) AS number
          FROM unnest(wanted) WITH ORDINALITY r(role, place) CROSS JOIN LATERAL (
            SELECT greatest(t.created_at, t.scheduled_for) AS due FROM task_live t
             WHERE t.state = 'r' AND t.role = r.role AND (-(t.priority + t.aged), t.created_at, t.id) >= (low[r.place], since[r.place], past[r.place])
             ORDER BY -(t.priority + t.aged), t.created_at, t.id LIMIT 1) first) f;
    IF wanted IS NULL THEN RETURN; END IF;
  END IF;
  IF fair > 0 AND cardinality(wanted) > 1 THEN
    RETURN QUERY SELECT * FROM task_claim(wanted[turn:turn], worker, least(fair, n), 0, low[turn:turn], since[turn:turn], past[turn:turn]);
    GET DIAGNOSTICS got = ROW_COUNT;
    want := n - got;
  END IF;
  WHILE want > 0 AND misses < 5 LOOP
    -- Where other sessions had locked all candidates, read more of them.
    window_size := want + CASE misses WHEN 0 THEN 0 ELSE 4 ^ (misses + 1) END::integer;
    -- The busy check is a scalar subquery with LIMIT: always one index probe. NOT EXISTS would be planned as an anti join over
    -- the active set, whose statistics are always stale.
    IF cardinality(wanted) = 1 THEN
      WITH w AS MATERIALIZED (
        SELECT t.id, t.dispensary_id FROM task_live t
         WHERE t.state = 'r' AND t.role = wanted[1] AND (-(t.priority + t.aged), t.created_at, t.id) >= (low[1], since[1], past[1])
           AND (t.dispensary_id IS NULL
                OR (SELECT a.id FROM task_live a WHERE a.state = 'a' AND a.dispensary_id = t.dispensary_id LIMIT 1) IS NULL)
         ORDER BY -(t.priority + t.aged), t.created_at, t.id LIMIT window_size FOR NO KEY UPDATE OF t SKIP LOCKED)
      SELECT count(*), array_agg(w.id) FILTER (WHERE CASE WHEN w.dispensary_id IS NULL THEN true
                                                         ELSE pg_try_advisory_xact_lock(7001, w.dispensary_id) END)
        INTO seen, heads FROM w;
    ELSE
      -- One ordered stream per role, merged; rows are locked as they are taken from the merge, so no more than that are.
      WITH m AS (
        SELECT s.id FROM (
          (SELECT t.id, t.dispensary_id, -(t.priority + t.aged) AS rank, t.created_at FROM task_live t
            WHERE t.state = 'r' AND t.role = wanted[1] AND (-(t.priority + t.aged), t.created_at, t.id) >= (low[1], since[1], past[1])
            ORDER BY 3, 4, 1)
          UNION ALL
          (SELECT t.id, t.dispensary_id, -(t.priority + t.aged) AS rank, t.created_at FROM task_live t
            WHERE t.state = 'r' AND t.role = wanted[2] AND (-(t.priority + t.aged), t.created_at, t.id) >= (low[2], since[2], past[2])
            ORDER BY 3, 4, 1)
          UNION ALL
          (SELECT t.id, t.dispensary_id, -(t.priority + t.aged) AS rank, t.created_at FROM task_live t
            WHERE t.state = 'r' AND t.role = wanted[3] AND (-(t.priority + t.aged), t.created_at, t.id) >= (low[3], since[3], past[3])
            ORDER BY 3, 4, 1)
          UNION ALL
          (SELECT t.id, t.dispensary_id, -(t.priority + t.aged) AS rank, t.created_at FROM task_live t
            WHERE t.state = 'r' AND t.role = wanted[4] AND (-(t.priority + t.aged), t.created_at, t.id) >= (low[4], since[4], past[4])
            ORDER BY 3, 4, 1)
          UNION ALL
          (SELECT t.id, t.dispensary_id, -(t.priority + t.aged) AS rank, t.created_at FROM task_live t
            WHERE t.state = 'r' AND t.role = wanted[5] AND (-(t.priority + t.aged), t.created_at, t.id) >= (low[5], since[5], past[5])
            ORDER BY 3, 4, 1)
          UNION ALL
          (SELECT t.id, t.dispensary_id, -(t.priority + t.aged) AS rank, t.created_at FROM task_live t
            WHERE t.state = 'r' AND t.role = wanted[6] AND (-(t.priority + t.aged), t.created_at, t.id) >= (low[6], since[6], past[6])
            ORDER BY 3, 4, 1)
        ) s
        WHERE s.dispensary_id IS NULL
           OR (SELECT a.id FROM task_live a WHERE a.state = 'a' AND a.dispensary_id = s.dispensary_id LIMIT 1) IS NULL
        ORDER BY s.rank, s.created_at, s.id),
      w AS MATERIALIZED (
        SELECT l.* FROM m CROSS JOIN LATERAL (
          SELECT t.id, t.dispensary_id, -(t.priority + t.aged) AS rank, t.created_at FROM task_live t WHERE t.id = m.id AND t.state::text = 'r'
             FOR NO KEY UPDATE OF t SKIP LOCKED) l
         LIMIT window_size),
      one AS MATERIALIZED (  -- two roles of one store may both have a head here
        SELECT w.*, row_number() OVER (PARTITION BY w.dispensary_id ORDER BY w.rank, w.created_at, w.id) AS place FROM w)
      SELECT count(*), array_agg(o.id ORDER BY o.rank, o.created_at, o.id) FILTER (WHERE CASE WHEN o.dispensary_id IS NULL THEN true WHEN o.place > 1 THEN false
                                                         ELSE pg_try_advisory_xact_lock(7001, o.dispensary_id) END)
        INTO seen, heads FROM one o;
    END IF;
    EXIT WHEN seen = 0;
    RETURN QUERY
      UPDATE task_live t
         SET state = 'a', worker_id = worker, claimed_at = clock_timestamp(), updated_at = clock_timestamp(), attempt = t.attempt + 1,
             uniq = CASE t.uniq WHEN 0 THEN 0 ELSE 2 END
       WHERE t.id = ANY (heads[:want])
         AND (t.dispensary_id IS NULL
              OR (SELECT a.id FROM task_live a WHERE a.state = 'a' AND a.dispensary_id = t.dispensary_id LIMIT 1) IS NULL)
      RETURNING t.*;
    GET DIAGNOSTICS more = ROW_COUNT;
    got := got + more;
    EXIT WHEN seen < window_size;
    IF more = 0 THEN misses := misses + 1; END IF;  -- other sessions had locked all of these
    want := n - got;
  END LOOP;
END $$;

-- What precedes a claim: the worker id is checked, and scheduled tasks that are due are promoted.
CREATE FUNCTION task_before_claim(worker text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF coalesce(worker, '') = '' THEN
    RAISE EXCEPTION 'a claim needs the id of a worker' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- The time in a subquery: as a volatile function it would filter all that is scheduled, instead of ending the index scan.
  IF EXISTS (SELECT FROM task_live t WHERE t.state = 's' AND t.scheduled_for <= (SELECT clock_timestamp()) LIMIT 1) THEN
    PERFORM promote_due_tasks();
  END IF;
END $$;

-- Claims up to `n` due tasks of these roles (null: any) for a worker, in the order in which they were claimed.
CREATE FUNCTION claim_tasks(roles text[], worker text, n integer) RETURNS SETOF worker_tasks LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM task_before_claim(worker);
  RETURN QUERY
    SELECT c.id, c.role, c.dispensary_id, c.platform, 'claimed', c.priority, c.scheduled_for, c.worker_id, c.claimed_at,
           c.started_at, NULL::timestamptz, c.last_heartbeat_at, c.result, c.error_message, c.retry_count, c.max_retries, c.payload,
           c.created_at, c.updated_at, c.attempt, c.postpone_count, NULL::text, NULL::text
      FROM task_claim(task_roles(roles), worker, n, 0, NULL, NULL, NULL) c ORDER BY -(c.priority + c.aged), c.created_at, c.id;
END $$;

CREATE FUNCTION claim_task("role" text, worker_id text) RETURNS SETOF worker_tasks LANGUAGE sql AS $$
  SELECT * FROM claim_tasks(CASE WHEN $1 IS NOT NULL THEN ARRAY[$1] END, $2, 1)
$$;

-- Ageing: a ready task gains a point of priority for every `every` that it has waited since it was due, up to `ceiling`;
-- what stands above that from the start (an operator's urgent request) stays above it. Skips locked rows; at most
-- `most` tasks per role and level, the oldest first. Returns how many rose.
CREATE FUNCTION age_tasks(every interval DEFAULT '15 minutes', ceiling integer DEFAULT 19, most integer DEFAULT 1000) RETURNS integer
LANGUAGE plpgsql SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  at CONSTANT timestamptz := clock_timestamp();
  raised integer := 0;
  more integer;
  asked text;
  level integer;
BEGIN
  FOREACH asked IN ARRAY task_roles(NULL) LOOP
    level := -2147483648;
    LOOP  -- a loose index scan over the levels that are in use, from the top
      level := (SELECT -(t.priority + t.aged) FROM task_live t WHERE t.state = 'r' AND t.role = asked AND -(t.priority + t.aged) > level
                 ORDER BY -(t.priority + t.aged) LIMIT 1);
      EXIT WHEN level IS NULL;
      CONTINUE WHEN -level >= ceiling;
      UPDATE task_live t SET aged = least(ceiling - t.priority, floor(extract(epoch FROM at - greatest(t.created_at, t.scheduled_for))
                                                                      / extract(epoch FROM every)))
       WHERE t.id = ANY (ARRAY(
               SELECT x.id FROM task_live x
                WHERE x.state = 'r' AND x.role = asked AND -(x.priority + x.aged) = level AND x.created_at <= at - every
                  AND greatest(x.created_at, x.scheduled_for) <= at - every * (x.aged + 1)
                ORDER BY x.created_at, x.id LIMIT most FOR NO KEY UPDATE SKIP LOCKED));
      GET DIAGNOSTICS more = ROW_COUNT;
      raised := raised + more;
    END LOOP;
  END LOOP;
  RETURN raised;
END $$;
