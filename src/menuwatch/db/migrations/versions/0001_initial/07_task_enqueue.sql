-- The task queue: what moves waiting tasks between their states, and enqueueing.

-- Promotes the next parked task of each of these keys that has no head. Only for a caller that holds the freed slot (I3): then no
-- other session can be filling it, and the unique index never fires.
CREATE FUNCTION task_promote_parked(stores integer[], roles text[]) RETURNS void LANGUAGE sql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
  UPDATE task_live t SET state = 'r', updated_at = clock_timestamp()
   WHERE t.id = ANY (ARRAY(
           SELECT (SELECT p.id FROM task_live p WHERE p.state = 'p' AND p.dispensary_id = k.store AND p.role = k.role
                    ORDER BY -p.priority, p.created_at, p.id LIMIT 1)
             FROM (SELECT DISTINCT u.store, u.role FROM unnest(stores, roles) u(store, role)) k
            WHERE (SELECT h.id FROM task_live h WHERE h.state IN ('r', 'a') AND h.dispensary_id = k.store AND h.role = k.role
                    LIMIT 1) IS NULL))
     AND t.state::text = 'p'  -- the cast keeps the planner on the primary key
$$;

-- The same for keys whose head the caller has just deleted: task_head admits no other head before the caller commits, so no
-- check is needed. Each key once.
CREATE FUNCTION task_promote_next(stores integer[], roles text[]) RETURNS void LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
  UPDATE task_live t SET state = 'r', updated_at = clock_timestamp()
   WHERE t.id = ANY (ARRAY(
           SELECT (SELECT p.id FROM task_live p WHERE p.state = 'p' AND p.dispensary_id = k.store AND p.role = k.role
                    ORDER BY -p.priority, p.created_at, p.id LIMIT 1)
             FROM unnest(stores, roles) k(store, role)))
     AND t.state::text = 'p';
END $$;

-- Where a parked task now comes before the ready head of its key, they change places. It never waits for locks, so that it can be
-- part of a claim: locked rows are left as they are.
CREATE FUNCTION task_reorder(stores integer[], roles text[]) RETURNS void LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  heads bigint[];
  nexts bigint[];
  held bigint[];
BEGIN
  SELECT array_agg(c.head), array_agg(c.next) INTO heads, nexts FROM (
    SELECT h.id AS head,
           (SELECT p.id FROM task_live p WHERE p.state = 'p' AND p.dispensary_id = k.store AND p.role = k.role
               AND (-p.priority, p.created_at, p.id) < (-h.priority, h.created_at, h.id)
             ORDER BY -p.priority, p.created_at, p.id LIMIT 1) AS next
      FROM (SELECT DISTINCT u.store, u.role FROM unnest(stores, roles) u(store, role)) k
      -- One probe of task_head each. Joined by `state = 'r'`, the planner would go through all that is ready, once per key.
      CROSS JOIN LATERAL (SELECT x.* FROM task_live x WHERE x.state IN ('r', 'a') AND x.dispensary_id = k.store AND x.role = k.role LIMIT 1) h
     WHERE h.state = 'r') c
   WHERE c.next IS NOT NULL;
  IF heads IS NULL THEN RETURN; END IF;
  SELECT array_agg(l.id) INTO held FROM (
    SELECT t.id FROM task_live t WHERE t.id = ANY (heads || nexts) AND t.state IN ('r', 'p') FOR NO KEY UPDATE OF t SKIP LOCKED) l;
  SELECT array_agg(c.head), array_agg(c.next) INTO heads, nexts
    FROM unnest(heads, nexts) c(head, next)
    JOIN task_live h ON h.id = c.head AND h.state::text = 'r'
    JOIN task_live p ON p.id = c.next AND p.state::text = 'p'
   WHERE c.head = ANY (held) AND c.next = ANY (held);
  UPDATE task_live t SET state = 'p', updated_at = clock_timestamp() WHERE t.id = ANY (heads);
  UPDATE task_live t SET state = 'r', updated_at = clock_timestamp() WHERE t.id = ANY (nexts);
END $$;

-- Moves these scheduled tasks to 'r', or to 'p' behind their head, if they are due and not locked.
CREATE FUNCTION task_promote_due(ids bigint[]) RETURNS integer LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
DECLARE
  moved integer;
  stores integer[];
  roles text[];
BEGIN
  WITH due AS MATERIALIZED (
    SELECT t.id, t.dispensary_id, t.role FROM task_live t
     WHERE t.id = ANY (ids) AND t.state::text = 's' AND t.scheduled_for <= clock_timestamp() FOR NO KEY UPDATE OF t SKIP LOCKED),
  heads AS MATERIALIZED (
    SELECT h.id, h.dispensary_id, h.role FROM (SELECT DISTINCT d.dispensary_id, d.role FROM due d) k
      JOIN task_live h ON h.state IN ('r', 'a') AND h.dispensary_id = k.dispensary_id AND h.role = k.role),
  -- A locked head may be about to be freed and is not waited for; tasks that would park behind it stay until the next call.
  held AS MATERIALIZED (
    SELECT h.dispensary_id, h.role FROM task_live h WHERE h.id IN (SELECT x.id FROM heads x) FOR KEY SHARE OF h SKIP LOCKED),
  moving AS MATERIALIZED (
    SELECT d.* FROM due d
     WHERE d.dispensary_id IS NULL
        OR NOT EXISTS (SELECT FROM heads x WHERE x.dispensary_id = d.dispensary_id AND x.role = d.role)
        OR EXISTS (SELECT FROM held x WHERE x.dispensary_id = d.dispensary_id AND x.role = d.role)),
  moves AS (
    UPDATE task_live t SET state = CASE WHEN t.dispensary_id IS NULL THEN 'r' ELSE 'p' END::"char", updated_at = clock_timestamp()
      FROM moving m WHERE t.id = m.id AND t.state::text = 's' RETURNING t.dispensary_id, t.role)
  SELECT count(*), array_agg(v.dispensary_id) FILTER (WHERE v.dispensary_id IS NOT NULL),
         array_agg(v.role) FILTER (WHERE v.dispensary_id IS NOT NULL) INTO moved, stores, roles FROM moves v;
  IF stores IS NOT NULL THEN
    PERFORM task_promote_parked(stores, roles);
    PERFORM task_reorder(stores, roles);
  END IF;
  RETURN moved;
END $$;

-- Moves what has become due from 's' to where it can be claimed; at most `most` tasks a call. Returns how many. It is part of each
-- claim, so it neither waits for long nor fails: while another open transaction gives a key its head, the due tasks of that
-- key stay where they are.
CREATE FUNCTION promote_due_tasks(most integer DEFAULT 2000) RETURNS integer LANGUAGE plpgsql
SET lock_timeout = '20ms' AS $$
DECLARE
  ids bigint[];
  moved integer := 0;
  blocked integer := 0;
  one bigint;
BEGIN
  SELECT array_agg(d.id) INTO ids FROM (
    SELECT t.id FROM task_live t WHERE t.state = 's' AND t.scheduled_for <= (SELECT clock_timestamp()) ORDER BY t.scheduled_for LIMIT most) d;
  IF ids IS NULL THEN RETURN 0; END IF;
  BEGIN
    RETURN task_promote_due(ids);
  EXCEPTION WHEN unique_violation OR lock_not_available THEN NULL;
  END;
  -- Then one task at a time, in random order, until too many were locked: unlocked tasks get through over several calls, and the claim
  -- that this is part of is not delayed.
  PERFORM set_config('lock_timeout', '1ms', true);
  FOR one IN SELECT x FROM unnest(ids) x ORDER BY random() LOOP
    BEGIN
      moved := moved + task_promote_due(ARRAY[one]);
    EXCEPTION WHEN unique_violation OR lock_not_available THEN
      blocked := blocked + 1;
      EXIT WHEN blocked >= 20;
    END;
  END LOOP;
  RETURN moved;
END $$;

-- Repairs keys that have parked tasks and no head. By I3 there are none; this is the safety net. Returns how many it repaired.
CREATE FUNCTION unpark_stranded_tasks() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  mended integer := 0;
  key record;
BEGIN
  FOR key IN
    WITH RECURSIVE k AS (  -- a loose index scan: one probe per key, however long its queue
      (SELECT p.dispensary_id, p.role FROM task_live p WHERE p.state IN ('p', 's') AND p.dispensary_id IS NOT NULL
        ORDER BY p.dispensary_id, p.role LIMIT 1)
      UNION ALL
      SELECT n.dispensary_id, n.role FROM k CROSS JOIN LATERAL (
        SELECT p.dispensary_id, p.role FROM task_live p WHERE p.state IN ('p', 's') AND p.dispensary_id IS NOT NULL
           AND (p.dispensary_id, p.role) > (k.dispensary_id, k.role) ORDER BY p.dispensary_id, p.role LIMIT 1) n)
    SELECT k.dispensary_id, k.role FROM k
     WHERE NOT EXISTS (SELECT FROM task_live h WHERE h.state IN ('r', 'a') AND h.dispensary_id = k.dispensary_id AND h.role = k.role)
       AND EXISTS (SELECT FROM task_live p WHERE p.state = 'p' AND p.dispensary_id = k.dispensary_id AND p.role = k.role)
  LOOP
    BEGIN
      PERFORM task_promote_parked(ARRAY[key.dispensary_id], ARRAY[key.role]);
      mended := mended + 1;
    EXCEPTION WHEN unique_violation THEN NULL;  -- another session was faster
    END;
  END LOOP;
  RETURN mended;
END $$;

-- Enqueues a batch in one round trip. The arrays run in parallel, one element per task. Returns per task, in order, its id and
-- whether it was created; a task with `alone` whose key (role and store; without a store: role, platform and payload) has
-- a waiting one gets that one's id, and may raise its priority or pull it forward. `wake` notifies the workers at commit.
CREATE FUNCTION enqueue_tasks(roles text[], stores integer[], priorities integer[], payloads jsonb[], due timestamptz[],
                              platforms text[], retries integer[], alone boolean[], wake boolean DEFAULT true)
RETURNS TABLE (ord integer, id bigint, created boolean) LANGUAGE plpgsql
SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
  n CONSTANT integer := coalesce(cardinality(roles), 0);
  at CONSTANT timestamptz := clock_timestamp();
  names CONSTANT text[] := task_roles(coalesce(roles, '{}'));
  ids bigint[];
  leads integer[];
  todo integer[];
  met integer[] := '{}';
  put bigint[];
  crowded_stores integer[] := '{}';
  crowded_roles text[] := '{}';
  ready boolean := false;
  rounds integer := 0;
  r record;
BEGIN
  IF n = 0 THEN RETURN; END IF;
  SELECT array_agg(nextval('task_ids')) INTO ids FROM generate_series(1, n);

  IF NOT true = ANY (alone) AND cardinality(array_remove(stores, NULL)) = 0 THEN
    INSERT INTO task_live (id, role, priority, payload, scheduled_for, state, platform, max_retries)
    SELECT u.id, u.role, u.priority, coalesce(u.payload, '{}'), u.due, CASE WHEN u.due > at THEN 's' ELSE 'r' END::"char", u.platform, u.retries
      FROM unnest(ids, names, priorities, payloads, due, platforms, retries) u(id, role, priority, payload, due, platform, retries);
    IF wake THEN PERFORM pg_notify('menuwatch_tasks', ''); END IF;
    RETURN QUERY SELECT x.ord::integer, x.id, true FROM unnest(ids) WITH ORDINALITY x(id, ord);
    RETURN;
  END IF;

  -- Within the batch: a task with `alone` is merged into an earlier one of its key, which takes over the higher priority and the
  -- earlier time.
  IF true = ANY (alone) THEN
    WITH i AS (
      SELECT u.*, CASE WHEN u.store IS NULL THEN md5(u.platform || coalesce(u.payload, '{}')::text) END AS print
        FROM unnest(names, stores, priorities, payloads, due, platforms, alone) WITH ORDINALITY
             u(role, store, priority, payload, due, platform, alone, ord)),
    l AS (
      SELECT i.*, CASE WHEN i.alone THEN min(i.ord) FILTER (WHERE i.alone OR i.store IS NOT NULL) OVER (PARTITION BY i.store, i.role, i.print)
                       ELSE i.ord END AS first
        FROM i),
    m AS (
      SELECT l.ord, l.first, max(l.priority) OVER f AS priority,
             nullif(min(coalesce(l.due, '-infinity')) OVER f, '-infinity') AS due
        FROM l WINDOW f AS (PARTITION BY l.first))
    SELECT array_agg(m.first ORDER BY m.ord), array_agg(m.priority ORDER BY m.ord), array_agg(m.due ORDER BY m.ord),
           array_agg(m.ord) FILTER (WHERE m.ord = m.first)
      INTO leads, priorities, due, todo FROM m;
  ELSE
    SELECT array_agg(g) INTO todo FROM generate_series(1, n) g;
    leads := todo;
  END IF;

  WHILE cardinality(todo) > 0 LOOP
    rounds := rounds + 1;
    IF rounds > 50 THEN
      RAISE EXCEPTION 'enqueue met the same tasks being claimed 50 times over' USING ERRCODE = 'serialization_failure';
    END IF;

    -- 1. Is one waiting already?
    IF true = ANY (alone) THEN
      FOR r IN
        SELECT o.ord, o.store, o.role, o.priority, o.due,
               CASE WHEN o.store IS NULL
                 THEN (SELECT w.id FROM task_live w WHERE w.uniq <> 0 AND w.state <> 'a' AND w.dispensary_id IS NULL
                          AND w.role = o.role AND md5(w.platform || w.payload::text) = md5(o.platform || coalesce(o.payload, '{}')::text)
                        ORDER BY w.id LIMIT 1)
                 ELSE coalesce(
                   (SELECT w.id FROM task_live w WHERE w.state = 'r' AND w.dispensary_id = o.store AND w.role = o.role LIMIT 1),
                   (SELECT w.id FROM task_live w WHERE w.state IN ('p', 's') AND w.dispensary_id = o.store AND w.role = o.role
                     ORDER BY -w.priority, w.created_at, w.id LIMIT 1))
               END AS there
          FROM unnest(names, stores, priorities, payloads, due, platforms, alone) WITH ORDINALITY
               o(role, store, priority, payload, due, platform, alone, ord)
         WHERE o.alone AND o.ord IN (SELECT unnest(todo))
         ORDER BY there
      LOOP
        CONTINUE WHEN r.there IS NULL;
        met := met || r.ord;
        ids[r.ord] := r.there;
        -- Wanted earlier: an untried task is pulled forward; one that is backing off only where the new one is more urgent.
        UPDATE task_live w SET priority = greatest(w.priority, r.priority), updated_at = at,
               scheduled_for = CASE WHEN w.state = 's' AND (w.attempt = 0 OR r.priority > w.priority)
                                    THEN least(w.scheduled_for, coalesce(r.due, at)) ELSE w.scheduled_for END
         WHERE w.id = r.there AND w.state::text <> 'a'
           AND (r.priority > w.priority OR (w.state::text = 's' AND w.attempt = 0 AND coalesce(r.due, at) < w.scheduled_for));
        IF FOUND THEN
          ready := ready OR coalesce(r.due, at) <= at;
          IF r.store IS NOT NULL THEN
            crowded_stores := crowded_stores || r.store;
            crowded_roles := crowded_roles || r.role;
          END IF;
        END IF;
      END LOOP;
      IF cardinality(met) > 0 THEN
        SELECT coalesce(array_agg(o.ord), '{}') INTO todo FROM (SELECT unnest(todo) EXCEPT SELECT unnest(met)) o(ord);
        EXIT WHEN cardinality(todo) = 0;
      END IF;
    END IF;

    -- 2. Lock the heads that some will park behind (I3), then insert all; tasks that lose a race are tried again.
    WITH i AS MATERIALIZED (
      SELECT u.*, coalesce(u.due > at, false) AS later
        FROM unnest(ids, names, stores, priorities, payloads, due, platforms, retries, alone) WITH ORDINALITY
             u(id, role, store, priority, payload, due, platform, retries, alone, ord)
       WHERE u.ord IN (SELECT unnest(todo))),
    k AS MATERIALIZED (SELECT DISTINCT i.store, i.role FROM i WHERE i.store IS NOT NULL AND NOT i.later),
    held AS MATERIALIZED (
      SELECT h.dispensary_id, h.role, h.priority, h.created_at
        FROM k CROSS JOIN LATERAL (
          SELECT x.id FROM task_live x WHERE x.state IN ('r', 'a') AND x.dispensary_id = k.store AND x.role = k.role OFFSET 0) c
        JOIN task_live h ON h.id = c.id AND h.state IN ('r', 'a')
       ORDER BY h.dispensary_id, h.role FOR KEY SHARE OF h),
    placed AS MATERIALIZED (
      SELECT i.*, held.role IS NOT NULL AS behind, i.priority > held.priority OR now() < held.created_at AS first,
             row_number() OVER (PARTITION BY i.store, i.role, i.later ORDER BY i.priority DESC, i.ord) AS place
        FROM i LEFT JOIN held ON NOT i.later AND held.dispensary_id = i.store AND held.role = i.role),
    puts AS (
      INSERT INTO task_live (id, role, dispensary_id, priority, payload, scheduled_for, state, platform, max_retries, uniq)
      SELECT p.id, p.role, p.store, p.priority, coalesce(p.payload, '{}'), p.due,
             CASE WHEN p.later THEN 's' WHEN p.behind THEN 'p' ELSE 'r' END::"char", p.platform, p.retries, p.alone::integer
        FROM placed p
       WHERE p.store IS NULL OR p.later OR p.behind OR p.place = 1
       ORDER BY p.store, p.role, p.ord
      ON CONFLICT DO NOTHING
      RETURNING id, state),
    -- Tasks that come before the head that they are parked behind: they will change places.
    early AS (SELECT array_agg(p.store) AS stores, array_agg(p.role) AS roles FROM placed p WHERE p.behind AND p.first)
    SELECT array_agg(p.id), ready OR coalesce(bool_or(p.state = 'r'), false),
           crowded_stores || (SELECT e.stores FROM early e), crowded_roles || (SELECT e.roles FROM early e)
      INTO put, ready, crowded_stores, crowded_roles FROM puts p;
    EXIT WHEN cardinality(put) = cardinality(todo);
    SELECT coalesce(array_agg(o.ord), '{}') INTO todo
      FROM (SELECT u.ord, u.id FROM unnest(ids) WITH ORDINALITY u(id, ord) WHERE u.ord IN (SELECT unnest(todo))) o
     WHERE NOT EXISTS (SELECT FROM unnest(put) x(id) WHERE x.id = o.id);
  END LOOP;

  IF cardinality(crowded_stores) > 0 THEN PERFORM task_reorder(crowded_stores, crowded_roles); END IF;
  IF wake AND ready THEN PERFORM pg_notify('menuwatch_tasks', ''); END IF;
  IF true = ANY (alone) THEN
    RETURN QUERY SELECT x.ord::integer, i.id, x.lead = x.ord AND m.ord IS NULL
                   FROM unnest(leads) WITH ORDINALITY x(lead, ord)
                   JOIN unnest(ids) WITH ORDINALITY i(id, ord) ON i.ord = x.lead
                   LEFT JOIN unnest(met) m(ord) ON m.ord = x.lead
                  ORDER BY x.ord;
  ELSE
    RETURN QUERY SELECT x.ord::integer, x.id, true FROM unnest(ids) WITH ORDINALITY x(id, ord);
  END IF;
END $$;

-- `INSERT INTO worker_tasks (role, dispensary_id, priority, payload, …)` enqueues a task under the same rules. Each
-- product_refresh has a payload of its own, so it is the one role that may wait more than once per store.
CREATE FUNCTION worker_tasks_insert() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  given timestamptz := NEW.created_at;
  made record;
BEGIN
  IF coalesce(NEW.status, 'pending') <> 'pending' THEN
    RAISE EXCEPTION 'a task starts as pending, not as %: claim_task and the workers take it from there', NEW.status
      USING ERRCODE = 'check_violation';
  END IF;
  SELECT e.id, e.created INTO made
    FROM enqueue_tasks(ARRAY[NEW.role], ARRAY[NEW.dispensary_id], ARRAY[coalesce(NEW.priority, 0)], ARRAY[NEW.payload],
                       ARRAY[NEW.scheduled_for], ARRAY[coalesce(NEW.platform, 'dutchie')], ARRAY[coalesce(NEW.max_retries, 3)],
                       ARRAY[NEW.role IS DISTINCT FROM 'product_refresh']) e;
  IF made.created AND given IS NOT NULL THEN
    UPDATE task_live SET created_at = given WHERE id = made.id;
    IF NEW.dispensary_id IS NOT NULL THEN PERFORM task_reorder(ARRAY[NEW.dispensary_id], task_roles(ARRAY[NEW.role])); END IF;
  END IF;
  SELECT * INTO NEW FROM worker_tasks w WHERE w.id = made.id;
  RETURN NEW;
END $$;

CREATE TRIGGER worker_tasks_insert INSTEAD OF INSERT ON worker_tasks FOR EACH ROW EXECUTE FUNCTION worker_tasks_insert();
