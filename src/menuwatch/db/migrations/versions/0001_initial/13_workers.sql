-- Workers: registry, commands, capacity by role, and how many there should be.

-- Who works: one row per worker process, beaten as a whole.
CREATE TABLE worker_registry (
  worker_id                text PRIMARY KEY,
  friendly_name            text NOT NULL,
  pod                      text,
  host                     text NOT NULL,
  pid                      integer,
  version                  text CHECK (length(version) <= 40),  -- of the software it runs; null where it does not say
  roles                    text[],                     -- null: any
  status                   text NOT NULL DEFAULT 'active',
  started_at               timestamptz NOT NULL DEFAULT now(),
  last_heartbeat_at        timestamptz NOT NULL DEFAULT now(),
  heartbeat                jsonb NOT NULL DEFAULT '{}',
  CONSTRAINT worker_registry_status CHECK (status IN ('active', 'paused', 'backing_off', 'stopping', 'stopped'))
) WITH (fillfactor = 50);
CREATE INDEX worker_registry_started ON worker_registry (started_at, worker_id);

-- A command for one worker, which receives it at once (the trigger notifies it) or at its next poll, and acknowledges it.
CREATE TABLE worker_commands (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  worker_id                text NOT NULL REFERENCES worker_registry (worker_id) ON UPDATE CASCADE ON DELETE CASCADE,
  command                  text NOT NULL CHECK (command IN ('decommission', 'pause', 'resume')),
  created_at               timestamptz NOT NULL DEFAULT now(),
  created_by               text,
  acknowledged_at          timestamptz,
  CONSTRAINT worker_commands_order CHECK (acknowledged_at >= created_at)
);
CREATE INDEX worker_commands_open ON worker_commands (worker_id, id) WHERE acknowledged_at IS NULL;
CREATE INDEX worker_commands_worker ON worker_commands (worker_id, id);

CREATE FUNCTION worker_commands_tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('menuwatch_tasks', 'command ' || NEW.worker_id);
  RETURN NULL;
END $$;

CREATE TRIGGER worker_commands_tell AFTER INSERT ON worker_commands FOR EACH ROW EXECUTE FUNCTION worker_commands_tell();

-- How many tasks a worker runs at once, as its heartbeat reports it. Without a usable number (external workers) it is one.
CREATE FUNCTION worker_slots(heartbeat jsonb) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN jsonb_typeof(heartbeat -> 'max_concurrent_tasks') = 'number'
              THEN least(greatest((heartbeat ->> 'max_concurrent_tasks')::numeric, 1), 1000)::integer ELSE 1 END
$$;

-- What there is to do, and how fast it gets done, by role. `ready_tasks` are the pending tasks that are due; those that wait for a host are
-- `blocked_tasks` instead (live_tasks), and left out of the estimate: no worker can do anything about them. A worker counts as active
-- while it is alive (00_stale_and_alive.sql) and may claim the role, also while it backs off; a paused worker does not count.
-- A worker for all roles counts for each. Its tasks per hour are what its slots could do at the average duration, not what they got.
CREATE VIEW v_worker_capacity AS
SELECT r.role, l.pending_tasks, l.ready_tasks, l.claimed_tasks, l.running_tasks, h.completed_last_hour, h.failed_last_hour,
       w.active_workers, h.avg_duration_sec, x.tasks_per_worker_hour,
       CASE WHEN l.pending_tasks = l.blocked_tasks THEN 0
            ELSE (l.pending_tasks - l.blocked_tasks) / nullif(w.active_workers * x.tasks_per_worker_hour, 0) END AS estimated_hours_to_drain,
       l.blocked_tasks, l.blocked_by
  FROM unnest(task_roles(NULL)) WITH ORDINALITY r(role, place)
  LEFT JOIN (
    SELECT t.role AS live_role, count(*) FILTER (WHERE t.state <> 'a') AS pending,
           count(*) FILTER (WHERE t.wait_state = 'ready') AS ready,
           count(*) FILTER (WHERE t.wait_state = 'blocked') AS blocked,
           array_agg(DISTINCT t.blocked_by) FILTER (WHERE t.wait_state = 'blocked') AS blocked_by,
           count(*) FILTER (WHERE t.state = 'a' AND t.started_at IS NULL) AS claimed,
           count(*) FILTER (WHERE t.state = 'a' AND t.started_at IS NOT NULL) AS running
      FROM live_tasks t GROUP BY t.role) c ON c.live_role = r.role
 CROSS JOIN LATERAL (
    SELECT coalesce(c.pending, 0) AS pending_tasks, coalesce(c.ready, 0) AS ready_tasks, coalesce(c.claimed, 0) AS claimed_tasks,
           coalesce(c.running, 0) AS running_tasks, coalesce(c.blocked, 0) AS blocked_tasks, coalesce(c.blocked_by, '{}') AS blocked_by) l
 CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE e.status = 'completed') AS completed_last_hour,
           count(*) FILTER (WHERE e.status = 'failed') AS failed_last_hour,
           avg(extract(epoch FROM e.completed_at - e.started_at)::double precision)
             FILTER (WHERE e.status = 'completed') AS avg_duration_sec
      FROM task_history e WHERE e.role = r.role AND e.completed_at > now() - interval '1 hour') h
 CROSS JOIN LATERAL (
    SELECT count(*) AS active_workers, avg(worker_slots(g.heartbeat)::double precision) AS slots
      FROM worker_registry g
     WHERE g.status IN ('active', 'backing_off') AND worker_alive(g.status, g.last_heartbeat_at)
       AND (g.roles IS NULL OR r.role = ANY (g.roles))) w
 CROSS JOIN LATERAL (
    SELECT 3600 / nullif(h.avg_duration_sec, 0) * coalesce(w.slots, 1) AS tasks_per_worker_hour) x
 ORDER BY r.place;

-- How many workers a supervisor runs: one row. `desired` is what people ordered (null: nothing yet) and outlives every supervisor. The rest
-- is written by the supervisor that holds the lease, and means nothing once `expires_at` is past.
CREATE TABLE supervisor_lease (
  singleton                boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  desired                  integer CHECK (desired >= 0),
  holder                   text,
  host                     text,
  pid                      integer,
  place                    text,
  expires_at               timestamptz,
  low                      integer,                    -- the range that may be ordered
  high                     integer,
  running                  integer NOT NULL DEFAULT 0,
  starting                 integer NOT NULL DEFAULT 0,
  draining                 integer NOT NULL DEFAULT 0, -- finish what they run and exit; not among `running`
  error                    text,
  CHECK (num_nulls(holder, host, pid, place, expires_at, low, high) IN (0, 7))
) WITH (fillfactor = 10);
INSERT INTO supervisor_lease DEFAULT VALUES;

-- A request for more or fewer Kubernetes pods, until it is carried out: one row. The number itself is the StatefulSet's; `desired` is null
-- while nothing is under way. `checked_at` is when a server last worked on it, `error` what prevented it then.
CREATE TABLE pod_scale_request (
  singleton                boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  desired                  integer CHECK (desired >= 0),
  requested_at             timestamptz,
  checked_at               timestamptz,
  error                    text,
  CHECK (num_nulls(desired, requested_at) IN (0, 2)),
  CHECK (error IS NULL OR desired IS NOT NULL)
) WITH (fillfactor = 10);
INSERT INTO pod_scale_request DEFAULT VALUES;

-- Log lines of workers, written in batches. Without a reference to the registry: lines of a worker stay when its row is removed.
CREATE TABLE log_lines (
  worker_id                text NOT NULL,
  seq                      bigint NOT NULL,            -- number of the line in the worker's log, from 1; the first are deleted first
  at                       timestamptz NOT NULL,
  level                    text NOT NULL,
  action                   text,
  message                  text NOT NULL,
  task_id                  bigint,
  attempt                  integer,
  details                  json NOT NULL DEFAULT '{}', -- json, not jsonb: the order of the fields is kept
  dropped                  integer NOT NULL DEFAULT 0, -- lines that were not stored from `dropped_since` to `at`: this line says so
  dropped_since            timestamptz,
  PRIMARY KEY (worker_id, seq),
  CONSTRAINT log_lines_dropped CHECK ((dropped > 0) = (dropped_since IS NOT NULL))
);
CREATE INDEX log_lines_task ON log_lines (task_id, at, worker_id, seq) WHERE task_id IS NOT NULL;
CREATE INDEX log_lines_time ON log_lines (at);
CREATE INDEX log_lines_gaps ON log_lines (worker_id, at) WHERE dropped > 0;
