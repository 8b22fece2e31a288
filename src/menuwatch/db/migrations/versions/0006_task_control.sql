-- What people do to tasks. Each function is one step of the caller's transaction; all of it happens or nothing.

-- The tasks that did not end well are few and looked for often, in lists and counts; those that completed cost this index nothing.
CREATE INDEX task_history_unwell ON task_history (id) INCLUDE (role, status) WHERE status <> 'completed';

-- Has tasks done again. What is over stays as it is, and is enqueued anew as a task of its own; what waits for its time waits no longer.
-- For each id the answer names the task that stands for it now, and what became of the wish:
--   created     it was over: `task_id` is the new one
--   joined      it was over, and the same work waits already (or is in this very batch): `task_id` is that one
--   pulled      it waited for its time, or for another try: it is due now
--   waiting     it waits already, and nothing but its turn keeps it
--   active      a worker is at it (or ended it this moment)
--   unhandled   nobody does work of this role in this version
--   missing     there is no such task, or none any more
-- `at_least` is the lowest priority that a retried task has. Keys are taken in the order in which enqueue_tasks takes them.
CREATE FUNCTION retry_tasks(ids bigint[], at_least integer DEFAULT 10, unhandled text[] DEFAULT '{}')
RETURNS TABLE (id bigint, task_id bigint, outcome text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  chunk CONSTANT integer := 5000;
  at CONSTANT timestamptz := clock_timestamp();
  pulled bigint[];
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
  -- Left as scheduled, with a time that has come: the next claim takes it up, and this waits for nobody's head.
  PERFORM FROM task_live t WHERE t.id = ANY (ids) AND t.state = 's' ORDER BY t.id FOR NO KEY UPDATE OF t;
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

  SELECT array_agg(h.id ORDER BY h.dispensary_id, h.role, h.id), array_agg(h.role ORDER BY h.dispensary_id, h.role, h.id),
         array_agg(h.dispensary_id ORDER BY h.dispensary_id, h.role, h.id),
         array_agg(greatest(h.priority, at_least) ORDER BY h.dispensary_id, h.role, h.id),
         array_agg(h.payload ORDER BY h.dispensary_id, h.role, h.id), array_agg(h.platform ORDER BY h.dispensary_id, h.role, h.id),
         array_agg(h.max_retries ORDER BY h.dispensary_id, h.role, h.id)
    INTO over, names, stores, priorities, payloads, platforms, retries
    FROM task_history h WHERE h.id = ANY (ids) AND h.role <> ALL (unhandled);
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

-- Cancels many tasks; returns how many were live, and how many of these a worker was at.
--
-- Order of locks: heads before what is parked behind them, each in the order of their ids. Who ends a task holds its row and then
-- wants the parked one that follows it; a parked row that were locked first, waiting for that head, would be a deadlock.
CREATE FUNCTION cancel_tasks_in_bulk(ids bigint[], reason text DEFAULT 'cancelled', OUT cancelled integer, OUT interrupted integer)
LANGUAGE plpgsql AS $$
DECLARE
  chunk CONSTANT integer := 10000;
  mine bigint[];
  n integer;
BEGIN
  cancelled := 0;
  PERFORM FROM task_live t WHERE t.id = ANY (ids) AND t.state IN ('r', 'a') ORDER BY t.id FOR UPDATE OF t;
  -- A fresh snapshot: what was promoted while this waited is locked now, and whatever is ours now stays as it is.
  SELECT array_agg(l.id), count(*) FILTER (WHERE l.state = 'a') INTO mine, interrupted
    FROM (SELECT t.id, t.state FROM task_live t WHERE t.id = ANY (ids) ORDER BY t.id FOR UPDATE OF t) l;
  FOR i IN 1 .. coalesce(cardinality(mine), 0) BY chunk LOOP
    SELECT count(*) INTO n FROM cancel_tasks(mine[i:i + chunk - 1], reason);
    cancelled := cancelled + n;
  END LOOP;
END $$;
