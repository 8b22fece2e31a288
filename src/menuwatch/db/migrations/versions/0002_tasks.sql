-- The task queue: a small hot table of live tasks, a history partitioned by day, and `worker_tasks`, the view over both.
--
-- Live states, and how a row moves:
--
--      enqueue ──► 'r' ready ──claim──► 'a' active ──finish──► task_history (completed | failed | cancelled)
--         │         ▲  ▲                  │
--         │         │  └──next of its key─┼── 'p' parked: due, but another task of its (store, role) is ready or active
--         └──► 's' ─┘◄──retry, postpone───┘   's' scheduled: not due yet
--
-- Invariants
--   I1  Of each (store, role) at most one row is 'r' or 'a': its head. Due ones behind it are 'p'. So the claim index holds
--       no blocked backlog, and stores take turns.
--   I2  Of each store at most one row is 'a', whatever its role.
--   I3  No row is 'p' while its key has no head. Whoever parks a row holds KEY SHARE on the head while it does; whoever frees a
--       head slot holds the row exclusively first (DELETE, or FOR UPDATE) and then, in a later statement with a fresh snapshot,
--       promotes the next. One of the two therefore sees the other. KEY SHARE stands in nobody's way but theirs: claims and
--       heartbeats lock FOR NO KEY UPDATE.
--   I4  A worker owns a task while (id, worker_id, attempt) matches. Whoever takes it away clears worker_id or raises attempt.

CREATE SEQUENCE task_ids AS bigint;

CREATE TABLE task_live (
  id                       bigint PRIMARY KEY DEFAULT nextval('task_ids'),
  created_at               timestamptz NOT NULL DEFAULT now(),
  updated_at               timestamptz NOT NULL DEFAULT now(),
  scheduled_for            timestamptz,
  claimed_at               timestamptz,
  started_at               timestamptz,
  last_heartbeat_at        timestamptz,
  dispensary_id            integer,
  priority                 integer NOT NULL DEFAULT 0,
  attempt                  integer NOT NULL DEFAULT 0,
  retry_count              integer NOT NULL DEFAULT 0,
  max_retries              integer NOT NULL DEFAULT 3,
  postpone_count           integer NOT NULL DEFAULT 0,
  uniq                     smallint NOT NULL DEFAULT 0,  -- 1: the one waiting task of its key; 2: was, until it was claimed
  aged                     smallint NOT NULL DEFAULT 0,  -- what waiting has added to its priority (age_tasks)
  state                    "char" NOT NULL DEFAULT 'r',
  role                     text NOT NULL,
  platform                 text NOT NULL DEFAULT 'dutchie',
  worker_id                text,
  error_message            text,
  payload                  jsonb NOT NULL DEFAULT '{}',
  result                   jsonb,
  CONSTRAINT task_live_state CHECK (state IN ('r', 's', 'p', 'a')),
  CONSTRAINT task_live_role CHECK (role IN ('store_discovery', 'entry_point_discovery', 'product_discovery', 'payload_fetch',
                                            'product_refresh', 'analytics_refresh')),
  CONSTRAINT task_live_priority CHECK (priority BETWEEN -1000 AND 1000),
  CONSTRAINT task_live_retries CHECK (retry_count BETWEEN 0 AND max_retries AND max_retries <= 1000),
  CONSTRAINT task_live_payload CHECK (jsonb_typeof(payload) = 'object'),
  CONSTRAINT task_live_owner CHECK ((state = 'a') = (worker_id IS NOT NULL) AND (state = 'a') = (claimed_at IS NOT NULL)),
  CONSTRAINT task_live_running CHECK (state = 'a' OR (started_at IS NULL AND last_heartbeat_at IS NULL)),
  CONSTRAINT task_live_scheduled CHECK (state <> 's' OR scheduled_for IS NOT NULL),
  CONSTRAINT task_live_parked CHECK (state <> 'p' OR dispensary_id IS NOT NULL),
  CONSTRAINT task_live_uniq CHECK (uniq IN (0, 1, 2) AND (uniq <> 1 OR state <> 'a'))
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05);
-- The claim: highest priority, then oldest. Negated, so that one ascending row comparison spans the whole order.
CREATE INDEX task_ready ON task_live (role, (-(priority + aged)), created_at, id) WHERE state = 'r';
CREATE INDEX task_scheduled ON task_live (scheduled_for) WHERE state = 's';
CREATE INDEX task_waiting ON task_live (dispensary_id, role, (-priority), created_at, id)
  WHERE state IN ('p', 's') AND dispensary_id IS NOT NULL;
-- I2; and the index of everything active (null stores are distinct, so tasks without a store are in it as well).
CREATE UNIQUE INDEX task_active ON task_live (dispensary_id) WHERE state = 'a';
CREATE UNIQUE INDEX task_head ON task_live (dispensary_id, role) WHERE state IN ('r', 'a') AND dispensary_id IS NOT NULL;
-- Two enqueuers at once cannot both add the one waiting task of a key. It leaves the index when it is claimed, so a task that
-- returns to waiting (retry) never collides with one that was enqueued meanwhile.
CREATE UNIQUE INDEX task_unique_store ON task_live (dispensary_id, role) WHERE uniq = 1 AND dispensary_id IS NOT NULL;
CREATE UNIQUE INDEX task_unique_payload ON task_live (role, md5(payload::text)) WHERE uniq = 1 AND dispensary_id IS NULL;
CREATE INDEX task_waiting_payload ON task_live (role, md5(payload::text)) WHERE uniq <> 0 AND state <> 'a' AND dispensary_id IS NULL;

-- Its rows come from task_live, which has checked their role.
CREATE TABLE task_history (
  id                       bigint NOT NULL,
  created_at               timestamptz NOT NULL,
  scheduled_for            timestamptz,
  claimed_at               timestamptz,
  started_at               timestamptz,
  completed_at             timestamptz NOT NULL,
  last_heartbeat_at        timestamptz,
  dispensary_id            integer,
  priority                 integer NOT NULL,
  attempt                  integer NOT NULL,
  retry_count              integer NOT NULL,
  max_retries              integer NOT NULL,
  postpone_count           integer NOT NULL,
  role                     text NOT NULL,
  platform                 text NOT NULL,
  status                   text NOT NULL,
  worker_id                text,
  error_message            text,
  payload                  jsonb NOT NULL,
  result                   jsonb,
  CONSTRAINT task_history_status CHECK (status IN ('completed', 'failed', 'cancelled')),
  CONSTRAINT task_history_reason CHECK ((status = 'completed') = (error_message IS NULL)),
  CONSTRAINT task_history_worked CHECK (status <> 'completed' OR (worker_id IS NOT NULL AND started_at IS NOT NULL)),
  CONSTRAINT task_history_order CHECK (started_at >= claimed_at AND completed_at >= started_at),
  PRIMARY KEY (id, completed_at)
) PARTITION BY RANGE (completed_at);
CREATE INDEX task_history_role ON task_history (role, completed_at);
CREATE INDEX task_history_store ON task_history (dispensary_id, completed_at) WHERE dispensary_id IS NOT NULL;

-- Makes the partition of the UTC day of `instant` if it is not there; says whether it made one. It is built apart and then
-- attached, which locks the parent only against other changes of its shape: nobody who finishes a task waits for it. There is
-- no default partition on purpose: it would have to be scanned at each attach, and forbids DETACH CONCURRENTLY.
CREATE FUNCTION ensure_task_history_partition(instant timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  day date := (instant AT TIME ZONE 'UTC')::date;
  part text := 'task_history_' || to_char(day, 'YYYYMMDD');
BEGIN
  IF to_regclass(part) IS NOT NULL THEN RETURN false; END IF;
  PERFORM pg_advisory_xact_lock(hashtext('task_history'));
  EXECUTE format('CREATE TABLE %I (LIKE task_history INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES)', part);
  EXECUTE format('ALTER TABLE task_history ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', part,
                 day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
  RETURN true;
EXCEPTION WHEN duplicate_table THEN
  -- Somebody made it while this waited; to_regclass, asked again, would answer from the cache as before.
  RETURN false;
END $$;
SELECT ensure_task_history_partition(now() + make_interval(days => d)) FROM generate_series(0, 3) d;

-- What everybody reads. A live task whose worker has been silent for more than 10 minutes shows as stale.
CREATE VIEW worker_tasks AS
SELECT t.id, t.role, t.dispensary_id, t.platform,
       CASE WHEN t.state <> 'a' THEN 'pending'
            WHEN coalesce(t.last_heartbeat_at, t.claimed_at) < now() - interval '10 minutes' THEN 'stale'
            WHEN t.started_at IS NULL THEN 'claimed'
            ELSE 'running' END AS status,
       t.priority, t.scheduled_for, t.worker_id, t.claimed_at, t.started_at, NULL::timestamptz AS completed_at,
       t.last_heartbeat_at, t.result, t.error_message, t.retry_count, t.max_retries, t.payload, t.created_at, t.updated_at,
       t.attempt, t.postpone_count
  FROM task_live t
UNION ALL
SELECT h.id, h.role, h.dispensary_id, h.platform, h.status,
       h.priority, h.scheduled_for, h.worker_id, h.claimed_at, h.started_at, h.completed_at,
       h.last_heartbeat_at, h.result, h.error_message, h.retry_count, h.max_retries, h.payload, h.created_at, h.completed_at,
       h.attempt, h.postpone_count
  FROM task_history h;

-- The roles that were asked for, by their present names; null means all of them.
CREATE FUNCTION task_roles(asked text[]) RETURNS text[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  known CONSTANT text[] := '{store_discovery,entry_point_discovery,product_discovery,payload_fetch,product_refresh,analytics_refresh}';
  named text[];
  unknown text;
BEGIN
  IF asked IS NULL THEN RETURN known; END IF;
  -- The former name of a role is accepted wherever one is given.
  named := array_replace(asked, 'product_resync', 'payload_fetch');
  IF NOT named <@ known OR array_position(named, NULL) IS NOT NULL THEN
    SELECT coalesce(min(r), 'null') INTO unknown FROM unnest(named) r WHERE r IS NULL OR r <> ALL (known);
    RAISE EXCEPTION 'role "%" does not exist: it is one of %, product_resync', unknown, array_to_string(known, ', ')
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN named;
END $$;

-- Gives each of these keys without a head its next parked task. Only for those who hold the slot that came free (I3): then
-- nobody else can be filling it, and the unique index never fires.
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

-- The same for keys whose head the caller has just deleted: task_head lets nobody put another one there before the caller commits, so
-- that nobody needs to look. Each key once.
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

-- Where a parked task now comes before the ready head of its key, they change places. Waits for nobody, so that it can be part of
-- a claim: rows that somebody has in hand are left as they are.
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

-- Moves these scheduled tasks to 'r', or to 'p' behind their head, if they are due and nobody has them in hand.
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
  -- A head that somebody is about to free is not waited for; what would park behind it stays until the next call.
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
-- claim, so it neither waits for long nor fails: while somebody's open transaction gives a key its head, the due tasks of that
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
  -- One key at a time then, in any order, and only until enough were in somebody's hands: what is free gets through, by and by,
  -- and a claim that this is part of is not held up.
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

-- Mends keys that have parked tasks and no head. By I3 there are none; this is the net under it. Returns how many it mended.
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
    EXCEPTION WHEN unique_violation THEN NULL;  -- somebody was quicker
    END;
  END LOOP;
  RETURN mended;
END $$;

-- Enqueues a batch in one round trip. The arrays run in parallel, one element per task. Returns per task, in order, its id and
-- whether it was created; a task asked for with `alone` whose key (role and store; without a store: role and payload) has
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

  -- Within the batch: a task that wants to wait alone stands back behind an earlier one of its key, which takes over the higher
  -- priority and the earlier time.
  IF true = ANY (alone) THEN
    WITH i AS (
      SELECT u.*, CASE WHEN u.store IS NULL THEN md5(coalesce(u.payload, '{}')::text) END AS print
        FROM unnest(names, stores, priorities, payloads, due, alone) WITH ORDINALITY u(role, store, priority, payload, due, alone, ord)),
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
                          AND w.role = o.role AND md5(w.payload::text) = md5(coalesce(o.payload, '{}')::text)
                        ORDER BY w.id LIMIT 1)
                 ELSE coalesce(
                   (SELECT w.id FROM task_live w WHERE w.state = 'r' AND w.dispensary_id = o.store AND w.role = o.role LIMIT 1),
                   (SELECT w.id FROM task_live w WHERE w.state IN ('p', 's') AND w.dispensary_id = o.store AND w.role = o.role
                     ORDER BY -w.priority, w.created_at, w.id LIMIT 1))
               END AS there
          FROM unnest(names, stores, priorities, payloads, due, alone) WITH ORDINALITY o(role, store, priority, payload, due, alone, ord)
         WHERE o.alone AND o.ord IN (SELECT unnest(todo))
         ORDER BY there
      LOOP
        CONTINUE WHEN r.there IS NULL;
        met := met || r.ord;
        ids[r.ord] := r.there;
        -- Asked for sooner: an untried task comes forward; one that is backing off does so only for something more urgent.
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

    -- 2. Hold the heads that some will have to park behind (I3), then put all of them in; who loses a race goes round again.
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
    -- What now comes before the head that it is parked behind: they will change places.
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

-- Other people's `INSERT INTO worker_tasks (role, dispensary_id, priority, payload, …)` goes through the same door. Each
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
    -- Where others had their hands on the stores of all that was looked at, look further.
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
    IF more = 0 THEN misses := misses + 1; END IF;  -- others had their hands on all of these
    want := n - got;
  END LOOP;
END $$;

-- What a claim needs before it: a worker with a name, and in its place whatever has come due.
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
           c.created_at, c.updated_at, c.attempt, c.postpone_count
      FROM task_claim(task_roles(roles), worker, n, 0, NULL, NULL, NULL) c ORDER BY -(c.priority + c.aged), c.created_at, c.id;
END $$;

CREATE FUNCTION claim_task("role" text, worker_id text) RETURNS SETOF worker_tasks LANGUAGE sql AS $$
  SELECT * FROM claim_tasks(CASE WHEN $1 IS NOT NULL THEN ARRAY[$1] END, $2, 1)
$$;

-- Old work rises: a ready task gains a point of priority for every `every` that it has waited since it was due, up to `ceiling`;
-- what stands above that from the start (an operator's urgent request) stays above it. Passes over what others have in hand; at most
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

-- Ends attempts. The arrays run in parallel: verb is `done`, `fail`, `retry`, `postpone`, `wait` (as postpone, but not counted: nothing was
-- tried) or `release` (given back as it was, by a worker that stops); `wait` is in seconds (retry, postpone, wait), `due` a time instead
-- (postpone, wait), `ran` how many seconds the handler took. An array that is null is one of nulls, and no verb means `done`.
-- Only attempts that this worker still owns are touched (I4); returned are those, with the status they have now.
-- The caller may have written other things in the same transaction: all of it commits together.
CREATE FUNCTION finish_tasks(worker text, ids bigint[], attempts integer[], verbs text[], reasons text[], results jsonb[],
                             wait double precision[], due timestamptz[], ran double precision[])
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
                              error_message, payload, result)
    SELECT d.id, d.created_at, d.scheduled_for, d.claimed_at,
           coalesce(d.started_at, greatest(d.claimed_at, at - make_interval(secs => coalesce(d.ran, 0)))), greatest(at, d.claimed_at, d.started_at),
           d.last_heartbeat_at, d.dispensary_id, d.priority, d.attempt, d.retry_count, d.max_retries, d.postpone_count, d.role, d.platform,
           CASE d.verb WHEN 'done' THEN 'completed' ELSE 'failed' END, d.worker_id,
           CASE WHEN d.verb <> 'done' THEN coalesce(nullif(d.reason, ''), 'no reason given') END, d.payload, coalesce(d.said, d.result)
      FROM d)
  -- From `d` alone: a join of what was deleted with what was inserted would be a nested loop over both.
  SELECT array_agg(d.id), array_agg(CASE d.verb WHEN 'done' THEN 'completed' ELSE 'failed' END),
         array_agg(d.dispensary_id) FILTER (WHERE d.dispensary_id IS NOT NULL), array_agg(d.role) FILTER (WHERE d.dispensary_id IS NOT NULL)
    INTO gone, outcomes, stores, freed FROM d;
  RETURN QUERY SELECT * FROM unnest(gone, outcomes);

  IF coalesce(cardinality(gone), 0) < cardinality(ids) AND verbs && ARRAY['retry', 'postpone', 'wait', 'release'] THEN
    WITH f AS MATERIALIZED (
      SELECT u.id, u.attempt, u.verb, u.reason, u.result,
             CASE u.verb WHEN 'retry' THEN at + make_interval(secs => greatest(coalesce(u.wait, 0), 0))
                         WHEN 'postpone' THEN coalesce(u.due, at + make_interval(secs => greatest(coalesce(u.wait, 0), 0)))
                         WHEN 'wait' THEN coalesce(u.due, at + make_interval(secs => greatest(coalesce(u.wait, 0), 0))) END AS due
        FROM unnest(ids, attempts, verbs, reasons, results, wait, due) u(id, attempt, verb, reason, result, wait, due)
       WHERE u.verb IN ('retry', 'postpone', 'wait', 'release')),
    b AS (
      UPDATE task_live t
         SET state = CASE WHEN f.due > at THEN 's' ELSE 'r' END::"char",
             scheduled_for = CASE WHEN f.verb = 'release' THEN t.scheduled_for ELSE f.due END,
             retry_count = t.retry_count + CASE WHEN f.verb = 'retry' OR (f.verb = 'postpone' AND t.postpone_count >= postponements) THEN 1 ELSE 0 END,
             postpone_count = t.postpone_count + CASE WHEN f.verb = 'postpone' AND t.postpone_count < postponements THEN 1 ELSE 0 END,
             error_message = CASE WHEN f.verb = 'release' THEN t.error_message ELSE f.reason END,
             result = coalesce(f.result, t.result),
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
-- after them, where it asked for more, one whose `next_due` is in how many seconds the next scheduled task comes due (null: none is).
CREATE FUNCTION cycle_tasks(worker text,
                            ids bigint[], attempts integer[], verbs text[], reasons text[], results jsonb[], wait double precision[],
                            due timestamptz[], ran double precision[],
                            parents bigint[], then_roles text[], then_stores integer[], then_priorities integer[], then_payloads jsonb[],
                            then_due timestamptz[], then_platforms text[], then_retries integer[], then_alone boolean[],
                            roles text[], n integer, fair integer, low integer[], since timestamptz[], past bigint[])
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
    SELECT array_agg(f.id) INTO ended FROM finish_tasks(worker, ids, attempts, verbs, reasons, results, wait, due, ran) f;
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

-- Cancels tasks that wait or run; returns the ids of those it found live. Whoever runs one has lost it, and is told.
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
                              error_message, payload, result)
    SELECT d.id, d.created_at, d.scheduled_for, d.claimed_at, d.started_at, greatest(at, d.claimed_at, d.started_at), d.last_heartbeat_at,
           d.dispensary_id, d.priority, d.attempt, d.retry_count, d.max_retries, d.postpone_count, d.role, d.platform, 'cancelled',
           d.worker_id, coalesce(nullif(reason, ''), 'cancelled'), d.payload, d.result
      FROM d)
  SELECT array_agg(d.id), array_agg(d.id) FILTER (WHERE d.state = 'a'),
         array_agg(d.dispensary_id) FILTER (WHERE d.state IN ('r', 'a') AND d.dispensary_id IS NOT NULL),
         array_agg(d.role) FILTER (WHERE d.state IN ('r', 'a') AND d.dispensary_id IS NOT NULL)
    INTO gone, running, stores, freed FROM d;
  IF stores IS NOT NULL THEN PERFORM task_promote_parked(stores, freed); END IF;
  IF running IS NOT NULL THEN PERFORM pg_notify('menuwatch_tasks', 'lost ' || x) FROM unnest(running) x; END IF;
  RETURN QUERY SELECT unnest(gone);
END $$;

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
                              error_message, payload, result)
    SELECT d.id, d.created_at, d.scheduled_for, d.claimed_at, d.started_at, greatest(at, d.claimed_at, d.started_at), d.last_heartbeat_at,
           d.dispensary_id, d.priority, d.attempt, d.retry_count, d.max_retries, d.postpone_count, d.role, d.platform, 'failed', d.worker_id,
           format('worker %s fell silent at %s, and no retry is left', d.worker_id, coalesce(d.last_heartbeat_at, d.claimed_at)), d.payload, d.result
      FROM d)
  SELECT array_agg(d.dispensary_id) FILTER (WHERE d.dispensary_id IS NOT NULL), array_agg(d.role) FILTER (WHERE d.dispensary_id IS NOT NULL)
    INTO stores, freed FROM d;
  WITH b AS (
    UPDATE task_live t
       SET state = 'r', retry_count = t.retry_count + 1,
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

-- Who works: one row per worker process, beaten as a whole.
CREATE TABLE worker_registry (
  worker_id                text PRIMARY KEY,
  friendly_name            text NOT NULL,
  pod                      text,
  host                     text NOT NULL,
  pid                      integer,
  roles                    text[],                     -- null: any
  status                   text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'stopping', 'stopped')),
  started_at               timestamptz NOT NULL DEFAULT now(),
  last_heartbeat_at        timestamptz NOT NULL DEFAULT now(),
  heartbeat                jsonb NOT NULL DEFAULT '{}'
) WITH (fillfactor = 50);
