-- The task queue: what operators do to tasks. Each function is one step of the caller's transaction.

-- Retries tasks. A finished task stays as it is, and a new task is enqueued for it; a scheduled task becomes due now.
-- For each id the result has the task that stands for it now, and the outcome:
--   created     it was finished: `task_id` is the new one
--   joined      it was finished, and the same work waits already (or is in this batch): `task_id` is that one
--   pulled      it was scheduled, or backing off: it is due now
--   raised      it is due and waits already: its priority went up to `at_least`
--   waiting     it is ready already
--   active      a worker runs it (or has just ended it)
--   unhandled   this version has no handler for its role
--   missing     there is no such task, or it was deleted
-- `at_least` is the lowest priority that a retried task has.
--
-- The time limit on locks is shorter than the one after which the server looks for deadlocks: where this and a worker that ends tasks and
-- enqueues others wait for each other, this one gives way and is called again.
CREATE FUNCTION retry_tasks(ids bigint[], at_least integer DEFAULT 10, unhandled text[] DEFAULT '{}')
RETURNS TABLE (id bigint, task_id bigint, outcome text) LANGUAGE plpgsql SET lock_timeout = '500ms' AS $$
#variable_conflict use_column
DECLARE
  chunk CONSTANT integer := 5000;
  at CONSTANT timestamptz := clock_timestamp();
  pulled bigint[];
  raised bigint[];
  raised_stores integer[];
  raised_roles text[];
  over bigint[];
  names text[];
  stores integer[];
  priorities integer[];
  payloads jsonb[];
  platforms text[];
  retries integer[];
  n integer;
  k integer;
  seen bigint[] := '{}';
BEGIN
  -- It stays scheduled, with a time in the past: the next claim promotes it, so that this needs no lock on its head.
  PERFORM FROM task_live t
    WHERE t.id = ANY (ids) AND (t.state = 's' OR (t.state IN ('r', 'p') AND t.priority < at_least)) ORDER BY t.id FOR NO KEY UPDATE OF t;
  WITH p AS (
    UPDATE task_live t SET scheduled_for = at, priority = greatest(t.priority, at_least), updated_at = at
     WHERE t.id = ANY (ids) AND t.state = 's' AND t.scheduled_for > at AND t.role <> ALL (unhandled)
    RETURNING t.id)
  SELECT array_agg(p.id) INTO pulled FROM p;
  IF pulled IS NOT NULL THEN
    PERFORM pg_notify('menuwatch_tasks', '');
    RETURN QUERY SELECT x, x, 'pulled' FROM unnest(pulled) x;
    seen := pulled;
  END IF;

  -- What is due already cannot be sooner than due, but comes before what is less urgent, of its own store as well.
  WITH u AS (
    UPDATE task_live t SET priority = at_least, updated_at = at
     WHERE t.id = ANY (ids) AND t.priority < at_least AND t.role <> ALL (unhandled)
       AND (t.state IN ('r', 'p') OR (t.state = 's' AND t.scheduled_for <= at)) AND t.id <> ALL (seen)
    RETURNING t.id, t.state, t.dispensary_id, t.role)
  SELECT array_agg(u.id), array_agg(u.dispensary_id) FILTER (WHERE u.state = 'p'), array_agg(u.role) FILTER (WHERE u.state = 'p')
    INTO raised, raised_stores, raised_roles FROM u;
  IF raised IS NOT NULL THEN
    IF raised_stores IS NOT NULL THEN PERFORM task_reorder(raised_stores, raised_roles); END IF;
    RETURN QUERY SELECT x, x, 'raised' FROM unnest(raised) x;
    seen := seen || raised;
  END IF;

  SELECT array_agg(h.id ORDER BY h.dispensary_id, h.role, h.id), array_agg(h.role ORDER BY h.dispensary_id, h.role, h.id),
         array_agg(h.dispensary_id ORDER BY h.dispensary_id, h.role, h.id),
         array_agg(greatest(h.priority, at_least) ORDER BY h.dispensary_id, h.role, h.id),
         array_agg(h.payload ORDER BY h.dispensary_id, h.role, h.id), array_agg(h.platform ORDER BY h.dispensary_id, h.role, h.id),
         array_agg(h.max_retries ORDER BY h.dispensary_id, h.role, h.id)
    INTO over, names, stores, priorities, payloads, platforms, retries
    FROM task_history h WHERE h.id = ANY (ids) AND h.role <> ALL (unhandled);
  -- The heads that some will park behind, in the order of their ids: as those are held who end tasks. enqueue_tasks takes them by store.
  PERFORM FROM task_live h
    WHERE h.id = ANY (ARRAY(
            SELECT (SELECT x.id FROM task_live x WHERE x.state IN ('r', 'a') AND x.dispensary_id = o.store AND x.role = o.role LIMIT 1)
              FROM (SELECT DISTINCT u.store, u.role FROM unnest(stores, names) u(store, role) WHERE u.store IS NOT NULL) o))
    ORDER BY h.id FOR KEY SHARE OF h;
  FOR i IN 1 .. coalesce(cardinality(over), 0) BY chunk LOOP
    k := least(i + chunk - 1, cardinality(over));
    n := k - i + 1;
    RETURN QUERY
      SELECT (over[i:k])[e.ord], e.id, CASE WHEN e.created THEN 'created' ELSE 'joined' END
        FROM enqueue_tasks(names[i:k], stores[i:k], priorities[i:k], payloads[i:k], array_fill(NULL::timestamptz, ARRAY[n]), platforms[i:k],
                           -- As worker_tasks_insert has it: each refresh has a payload of its own.
                           retries[i:k], ARRAY(SELECT r <> 'product_refresh' FROM unnest(names[i:k]) WITH ORDINALITY u(r, o) ORDER BY o)) e;
  END LOOP;
  seen := seen || coalesce(over, '{}');

  IF cardinality(seen) < cardinality(ids) THEN
    RETURN QUERY
      SELECT x.id, w.id,
             CASE WHEN w.id IS NULL THEN 'missing' WHEN w.role = ANY (unhandled) THEN 'unhandled'
                  WHEN w.status = 'pending' THEN 'waiting' ELSE 'active' END
        FROM (SELECT unnest(ids) EXCEPT SELECT unnest(seen)) x(id) LEFT JOIN worker_tasks w ON w.id = x.id;
  END IF;
END $$;

-- Cancels many tasks; returns how many it cancelled, how many of these were active, and how many were left because they stayed
-- locked: mostly by a worker that is ending them.
--
-- It waits for no row while it holds others, so that it is in no deadlock with those who end, promote and enqueue; it comes back for what
-- was locked. Only the promotion of what was parked can wait, and gives way as retry_tasks does.
CREATE FUNCTION cancel_tasks_in_bulk(ids bigint[], reason text DEFAULT 'cancelled', OUT cancelled integer, OUT interrupted integer,
                                     OUT busy integer)
LANGUAGE plpgsql SET lock_timeout = '500ms' AS $$
DECLARE
  chunk CONSTANT integer := 10000;
  rounds CONSTANT integer := 10;
  pause CONSTANT double precision := 0.02;
  mine bigint[] := '{}';
  others bigint[] := ids;
  got bigint[];
  n integer;
BEGIN
  FOR round IN 1 .. rounds LOOP
    SELECT array_agg(l.id) INTO got
      FROM (SELECT t.id FROM task_live t WHERE t.id = ANY (others) ORDER BY t.id FOR UPDATE OF t SKIP LOCKED) l;
    mine := mine || coalesce(got, '{}');
    SELECT array_agg(o.id) INTO others
      FROM (SELECT t.id FROM task_live t WHERE t.id = ANY (others) EXCEPT SELECT unnest(got)) o;
    EXIT WHEN others IS NULL;
    PERFORM pg_sleep(pause);
  END LOOP;
  busy := coalesce(cardinality(others), 0);
  SELECT count(*) INTO interrupted FROM task_live t WHERE t.id = ANY (mine) AND t.state = 'a';
  cancelled := 0;
  FOR i IN 1 .. cardinality(mine) BY chunk LOOP
    SELECT count(*) INTO n FROM cancel_tasks(mine[i:i + chunk - 1], reason);
    cancelled := cancelled + n;
  END LOOP;
END $$;
