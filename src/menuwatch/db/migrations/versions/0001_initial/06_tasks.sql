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
--   I3  No row is 'p' while its key has no head. A transaction that parks a row holds KEY SHARE on the head while it does; one that
--       frees a head slot first locks the row exclusively (DELETE, or FOR UPDATE) and then, in a later statement with a fresh
--       snapshot, promotes the next. So one of the two sees the other. KEY SHARE conflicts with nothing else: claims and heartbeats
--       lock FOR NO KEY UPDATE.
--   I4  A worker owns a task while (id, worker_id, attempt) matches. Taking it away clears worker_id or raises attempt.

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
  uniq                     smallint NOT NULL DEFAULT 0,  -- 1: the one waiting task of its key; 2: it was, before it was claimed
  aged                     smallint NOT NULL DEFAULT 0,  -- priority gained by waiting (age_tasks)
  state                    "char" NOT NULL DEFAULT 'r',
  role                     text NOT NULL,
  platform                 text NOT NULL DEFAULT 'dutchie',
  worker_id                text,
  error_message            text,
  postpone_code            text,  -- why it is postponed (core/postpone.py), null where it is not
  postpone_host            text,  -- the host that is the reason
  payload                  jsonb NOT NULL DEFAULT '{}',
  result                   jsonb,
  earlier_attempts         jsonb,  -- how the attempts before this one ended (task_attempts_with); null where it is the first
  CONSTRAINT task_live_state CHECK (state IN ('r', 's', 'p', 'a')),
  CONSTRAINT task_live_role CHECK (role IN ('store_discovery', 'entry_point_discovery', 'product_discovery', 'payload_fetch',
                                            'product_refresh', 'analytics_refresh')),
  CONSTRAINT task_live_priority CHECK (priority BETWEEN -1000 AND 1000),
  CONSTRAINT task_live_retries CHECK (retry_count >= 0 AND retry_count <= max_retries AND max_retries <= 1000),
  CONSTRAINT task_live_payload CHECK (jsonb_typeof(payload) = 'object'),
  CONSTRAINT task_live_owner CHECK ((state = 'a') = (worker_id IS NOT NULL) AND (state = 'a') = (claimed_at IS NOT NULL)),
  CONSTRAINT task_live_running CHECK (state = 'a' OR (started_at IS NULL AND last_heartbeat_at IS NULL)),
  CONSTRAINT task_live_scheduled CHECK (state <> 's' OR scheduled_for IS NOT NULL),
  CONSTRAINT task_live_parked CHECK (state <> 'p' OR dispensary_id IS NOT NULL),
  CONSTRAINT task_live_postpone_code CHECK (postpone_code IN ('paused', 'circuit', 'cooling', 'pace', 'busy', 'no_free_proxy', 'unknown',
                                                              'throttled', 'blocked', 'robots', 'no_proxy', 'refresh_running', 'other')),
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
CREATE UNIQUE INDEX task_unique_payload ON task_live (role, md5(platform || payload::text)) WHERE uniq = 1 AND dispensary_id IS NULL;
CREATE INDEX task_waiting_payload ON task_live (role, md5(platform || payload::text)) WHERE uniq <> 0 AND state <> 'a' AND dispensary_id IS NULL;

-- The text of a failure without what differs from case to case: quoted texts and texts in parentheses become `…`, numbers, ids, times
-- and ports `#`; an HTTP status stays.
CREATE FUNCTION error_template(reason text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT left(btrim(regexp_replace(regexp_replace(regexp_replace(left(reason, 600),
    '"[^"]*"|`[^`]*`|(?<!\w)''[^'']*''(?!\w)|\([^()]*\)', '…', 'g'),
    '(?<![\w-])(?<!HTTP )[\w-]*[0-9][\w-]*([.:,][\w-]*[0-9][\w-]*)*', '#', 'g'),
    '\s+', ' ', 'g')), 200)
$$;

-- The same as 12 hexadecimal digits: failures of one cause have equal ones. Its body is parsed when it is created, so that a dump can be
-- restored whatever the search path: a column is generated from it.
CREATE FUNCTION error_fingerprint(reason text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN left(md5(error_template(reason)), 12);

-- The earlier attempts of a task and the one that ends now without ending the task; the newest 50. They are in the task's row, so that
-- they are kept as long as it, and tasks that complete at once, as nearly all do, cost nothing.
CREATE FUNCTION task_attempts_with(t task_live, at timestamptz, outcome text, reason text, ran double precision) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT (coalesce(t.earlier_attempts, '[]') || jsonb_build_array(jsonb_build_object(
            'attempt', t.attempt, 'worker_id', t.worker_id, 'claimed_at', t.claimed_at,
            'started_at', coalesce(t.started_at, greatest(t.claimed_at, at - make_interval(secs => coalesce(ran, 0)))),
            'ended_at', greatest(at, t.claimed_at, t.started_at), 'outcome', outcome, 'error', left(reason, 500))))
         - CASE WHEN jsonb_array_length(t.earlier_attempts) >= 50 THEN 0 ELSE 50 END
$$;

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
  -- Stored with the failure, so that a week of failures is grouped without reading their texts.
  cause                    text GENERATED ALWAYS AS (CASE WHEN status = 'failed' THEN error_fingerprint(error_message) END) STORED,
  payload                  jsonb NOT NULL,
  result                   jsonb,
  earlier_attempts         jsonb,
  CONSTRAINT task_history_status CHECK (status IN ('completed', 'failed', 'cancelled')),
  CONSTRAINT task_history_reason CHECK ((status = 'completed') = (error_message IS NULL)),
  CONSTRAINT task_history_worked CHECK (status <> 'completed' OR (worker_id IS NOT NULL AND started_at IS NOT NULL)),
  CONSTRAINT task_history_order CHECK (started_at >= claimed_at AND completed_at >= started_at),
  PRIMARY KEY (id, completed_at)
) PARTITION BY RANGE (completed_at);
CREATE INDEX task_history_role ON task_history (role, completed_at);
CREATE INDEX task_history_store ON task_history (dispensary_id, completed_at) WHERE dispensary_id IS NOT NULL;
-- Failed and cancelled tasks are few and often listed and counted; completed ones cost this index nothing.
CREATE INDEX task_history_not_completed ON task_history (id) INCLUDE (role, status) WHERE status <> 'completed';
CREATE INDEX task_history_cause ON task_history (cause, completed_at) INCLUDE (role, platform, id, dispensary_id) WHERE status = 'failed';
-- The refreshes of one payload; other tasks are not in this index.
CREATE INDEX task_history_payload ON task_history ((payload ->> 'payload_id')) WHERE payload ->> 'payload_id' IS NOT NULL;

-- Makes the partition of the UTC day of `instant` if it does not exist; returns whether it did. It is built apart and then
-- attached, which locks the parent only against other changes of its shape: no transaction that ends a task waits for it. There is
-- no default partition on purpose: it would have to be scanned at each attach, and forbids DETACH CONCURRENTLY.
CREATE FUNCTION ensure_task_history_partition(instant timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  day date := (instant AT TIME ZONE 'UTC')::date;
  part text := 'task_history_' || to_char(day, 'YYYYMMDD');
BEGIN
  IF to_regclass(part) IS NOT NULL THEN RETURN false; END IF;
  PERFORM pg_advisory_xact_lock(hashtext('task_history'));
  EXECUTE format('CREATE TABLE %I (LIKE task_history INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES INCLUDING GENERATED)', part);
  EXECUTE format('ALTER TABLE task_history ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', part,
                 day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
  RETURN true;
EXCEPTION WHEN duplicate_table THEN
  -- Another session made it while this one waited; a second to_regclass would still answer from the cache.
  RETURN false;
END $$;

SELECT ensure_task_history_partition(now() + make_interval(days => d)) FROM generate_series(0, 3) d;

-- Live and finished tasks, for readers and for INSERT.
CREATE VIEW worker_tasks AS
SELECT t.id, t.role, t.dispensary_id, t.platform,
       live_task_status(t.state, t.claimed_at, t.started_at, t.last_heartbeat_at, (SELECT stale_before())) AS status,
       t.priority, t.scheduled_for, t.worker_id, t.claimed_at, t.started_at, NULL::timestamptz AS completed_at,
       t.last_heartbeat_at, t.result, t.error_message, t.retry_count, t.max_retries, t.payload, t.created_at, t.updated_at,
       t.attempt, t.postpone_count, CASE WHEN t.state = 's' THEN t.postpone_code END AS postpone_code,
       CASE WHEN t.state = 's' THEN t.postpone_host END AS postpone_host
  FROM task_live t
UNION ALL
SELECT h.id, h.role, h.dispensary_id, h.platform, h.status,
       h.priority, h.scheduled_for, h.worker_id, h.claimed_at, h.started_at, h.completed_at,
       h.last_heartbeat_at, h.result, h.error_message, h.retry_count, h.max_retries, h.payload, h.created_at, h.completed_at,
       h.attempt, h.postpone_count, NULL, NULL
  FROM task_history h;

-- Live tasks, and of those that no worker has, what they wait for. `wait_state` is
--   blocked    `blocked_by` is the host it needs, or that postponed it, and gets no requests now (host_block_reason)
--   scheduled  it is not due yet
--   ready      else: a worker may claim it, now or after others of its store
-- This is the only place that says so: lists, counts and forecasts read it here.
CREATE VIEW live_tasks AS
SELECT t.*, b.host AS blocked_by,
       CASE WHEN t.state = 'a' THEN NULL WHEN b.host IS NOT NULL THEN 'blocked'
            WHEN t.state = 's' AND t.scheduled_for > now() THEN 'scheduled' ELSE 'ready' END AS wait_state
  FROM task_live t
 CROSS JOIN LATERAL (SELECT (SELECT blocked_hosts()) AS blocked) x
 CROSS JOIN LATERAL (
    SELECT CASE WHEN x.blocked IS NULL OR t.state = 'a' THEN NULL
                WHEN t.state = 's' AND t.scheduled_for > now() THEN CASE WHEN x.blocked -> 'hosts' ? t.postpone_host THEN t.postpone_host END
                WHEN t.role IN ('store_discovery', 'entry_point_discovery', 'product_discovery', 'payload_fetch')
                  THEN x.blocked -> 'platforms' ->> t.platform END AS host) b;

-- Validates roles and returns them by their current names; null means all roles.
CREATE FUNCTION task_roles(asked text[]) RETURNS text[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  known CONSTANT text[] := '{store_discovery,entry_point_discovery,product_discovery,payload_fetch,product_refresh,analytics_refresh}';
  named text[];
  unknown text;
BEGIN
  IF asked IS NULL THEN RETURN known; END IF;
  -- The former name of a role is accepted as well.
  named := array_replace(asked, 'product_resync', 'payload_fetch');
  IF NOT named <@ known OR array_position(named, NULL) IS NOT NULL THEN
    SELECT coalesce(min(r), 'null') INTO unknown FROM unnest(named) r WHERE r IS NULL OR r <> ALL (known);
    RAISE EXCEPTION 'role "%" does not exist: it is one of %, product_resync', unknown, array_to_string(known, ', ')
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN named;
END $$;
