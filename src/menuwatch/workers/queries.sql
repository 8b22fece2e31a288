-- piece: entry_columns
worker_id, friendly_name, pod, host, pid, roles, status, started_at, last_heartbeat_at, heartbeat

-- name: register
INSERT INTO worker_registry (worker_id, friendly_name, pod, host, pid, roles, version)
VALUES (%(worker)s::text, %(name)s::text, %(pod)s::text, %(host)s::text, %(pid)s::integer, %(roles)s::text[], %(version)s::text)
ON CONFLICT (worker_id) DO UPDATE
   SET status = 'active', started_at = now(), last_heartbeat_at = now(), friendly_name = excluded.friendly_name, pod = excluded.pod,
       host = excluded.host, pid = excluded.pid, roles = excluded.roles, version = excluded.version
RETURNING xmax = 0;

-- name: enter
-- Nothing is returned while another living worker has the id: of two that start at once, one gets it.
INSERT INTO worker_registry AS w (worker_id, friendly_name, pod, host, pid, roles, version)
VALUES (%(worker)s::text, %(name)s::text, %(pod)s::text, %(host)s::text, %(pid)s::integer, %(roles)s::text[], %(version)s::text)
ON CONFLICT (worker_id) DO UPDATE
   SET status = 'active', started_at = clock_timestamp(), last_heartbeat_at = clock_timestamp(), heartbeat = '{}',
       friendly_name = excluded.friendly_name, pod = excluded.pod, host = excluded.host, pid = excluded.pid, roles = excluded.roles,
       version = excluded.version
 WHERE NOT worker_alive(w.status, w.last_heartbeat_at) OR (w.host = excluded.host AND w.pid = %(gone)s::integer)
RETURNING started_at;

-- name: void_commands
-- Commands for the worker that had this id before.
UPDATE worker_commands SET acknowledged_at = greatest(clock_timestamp(), created_at)
 WHERE worker_id = %(worker)s::text AND acknowledged_at IS NULL;

-- name: beat
-- A worker whose row is gone (registration failed, or it was pruned) is registered again; one whose id was taken over is not.
INSERT INTO worker_registry AS w (worker_id, friendly_name, pod, host, pid, roles, version, status, heartbeat, started_at)
VALUES (%(worker)s::text, %(name)s::text, %(pod)s::text, %(host)s::text, %(pid)s::integer, %(roles)s::text[], %(version)s::text, %(status)s::text,
        %(heartbeat)s::text::jsonb, coalesce(%(entered)s::timestamptz, now()))
ON CONFLICT (worker_id) DO UPDATE SET status = excluded.status, last_heartbeat_at = now(), heartbeat = excluded.heartbeat
 WHERE w.host = excluded.host AND w.pid IS NOT DISTINCT FROM excluded.pid AND w.started_at = coalesce(%(entered)s::timestamptz, w.started_at);

-- name: get_worker
SELECT {entry_columns}
  FROM worker_registry WHERE worker_id = %(worker)s::text;

-- name: lock_worker
SELECT {entry_columns}
  FROM worker_registry WHERE worker_id = %(worker)s::text FOR NO KEY UPDATE;

-- name: deregister
UPDATE worker_registry SET status = 'stopped', last_heartbeat_at = now() WHERE worker_id = %(worker)s::text;

-- name: mark_dead
-- The process ended without deregistering. The clocks of the two machines may differ.
UPDATE worker_registry SET status = 'stopped'
 WHERE host = %(host)s::text AND pid = %(pid)s::integer AND pod IS NOT DISTINCT FROM %(pod)s::text
   AND started_at >= %(since)s::timestamptz - interval '10 minutes' AND status <> 'stopped'
RETURNING worker_id;

-- name: prune
-- Those that stopped, and those that fell silent without a word, long ago; their commands go with them.
DELETE FROM worker_registry
 WHERE last_heartbeat_at < now() - make_interval(secs => %(seconds)s::double precision)
   AND NOT EXISTS (SELECT FROM task_live t WHERE t.worker_id = worker_registry.worker_id AND t.state = 'a');

-- name: send_command
WITH open AS (
  SELECT id, command, created_at, created_by, acknowledged_at FROM worker_commands
   WHERE worker_id = %(worker)s::text AND acknowledged_at IS NULL ORDER BY id DESC LIMIT 1
), sent AS (
  INSERT INTO worker_commands (worker_id, command, created_by)
  SELECT %(worker)s::text, %(command)s::text, %(by)s::text
   WHERE NOT EXISTS (SELECT FROM open WHERE command = %(command)s::text)
  RETURNING id, command, created_at, created_by, acknowledged_at
)
SELECT * FROM sent UNION ALL SELECT * FROM open WHERE command = %(command)s::text;

-- name: receive_commands
UPDATE worker_commands SET acknowledged_at = greatest(clock_timestamp(), created_at)
 WHERE worker_id = %(worker)s::text AND acknowledged_at IS NULL
RETURNING id, command, created_at, created_by, acknowledged_at;

-- name: pending_commands
SELECT id, command, created_at, created_by, acknowledged_at FROM worker_commands
 WHERE worker_id = %(worker)s::text AND acknowledged_at IS NULL ORDER BY id;

-- name: list_workers
SELECT {entry_columns}
  FROM worker_registry
 WHERE %(all)s::boolean OR status <> 'stopped'
 ORDER BY started_at, worker_id;
