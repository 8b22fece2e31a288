-- name: register
INSERT INTO worker_registry (worker_id, friendly_name, pod, host, pid, roles, version)
VALUES (%(worker)s::text, %(name)s::text, %(pod)s::text, %(host)s::text, %(pid)s::integer, %(roles)s::text[], %(version)s::text)
ON CONFLICT (worker_id) DO UPDATE
   SET status = 'active', started_at = now(), last_heartbeat_at = now(), friendly_name = excluded.friendly_name, pod = excluded.pod,
       host = excluded.host, pid = excluded.pid, roles = excluded.roles, version = excluded.version
RETURNING xmax = 0;

-- name: beat
-- A worker whose row is gone (registering failed at its start, or somebody cleaned up) enters itself again.
INSERT INTO worker_registry (worker_id, friendly_name, pod, host, pid, roles, version, status, heartbeat)
VALUES (%(worker)s::text, %(name)s::text, %(pod)s::text, %(host)s::text, %(pid)s::integer, %(roles)s::text[], %(version)s::text, %(status)s::text,
        %(heartbeat)s::text::jsonb)
ON CONFLICT (worker_id) DO UPDATE SET status = excluded.status, last_heartbeat_at = now(), heartbeat = excluded.heartbeat;

-- name: heard
-- A worker that somebody else wrote beats through the API. It has to be registered, and not to have left.
UPDATE worker_registry SET status = %(status)s::text, last_heartbeat_at = now(), heartbeat = %(heartbeat)s::text::jsonb
 WHERE worker_id = %(worker)s::text AND status <> 'stopped';

-- name: get_worker
SELECT worker_id, friendly_name, pod, host, pid, roles, status, started_at, last_heartbeat_at, heartbeat
  FROM worker_registry WHERE worker_id = %(worker)s::text;

-- name: lock_worker
SELECT worker_id, friendly_name, pod, host, pid, roles, status, started_at, last_heartbeat_at, heartbeat
  FROM worker_registry WHERE worker_id = %(worker)s::text FOR NO KEY UPDATE;

-- name: deregister
UPDATE worker_registry SET status = 'stopped', last_heartbeat_at = now() WHERE worker_id = %(worker)s::text;

-- name: gone
-- Somebody saw this process end: whatever it did not say of itself any more is said for it. The clocks of the two machines may differ.
UPDATE worker_registry SET status = 'stopped'
 WHERE host = %(host)s::text AND pid = %(pid)s::integer AND pod IS NOT DISTINCT FROM %(pod)s::text
   AND started_at >= %(since)s::timestamptz - interval '10 minutes' AND status <> 'stopped'
RETURNING worker_id;

-- name: prune
-- Those that stopped, and those that fell silent without a word, long ago; their commands go with them.
DELETE FROM worker_registry
 WHERE last_heartbeat_at < now() - make_interval(secs => %(seconds)s::double precision)
   AND NOT EXISTS (SELECT FROM task_live t WHERE t.worker_id = worker_registry.worker_id AND t.state = 'a');

-- name: give_command
WITH open AS (
  SELECT id, worker_id, command, created_at, created_by, acknowledged_at FROM worker_commands
   WHERE worker_id = %(worker)s::text AND acknowledged_at IS NULL ORDER BY id DESC LIMIT 1
), told AS (
  INSERT INTO worker_commands (worker_id, command, created_by)
  SELECT %(worker)s::text, %(command)s::text, %(by)s::text
   WHERE NOT EXISTS (SELECT FROM open WHERE command = %(command)s::text)
  RETURNING id, worker_id, command, created_at, created_by, acknowledged_at
)
SELECT * FROM told UNION ALL SELECT * FROM open WHERE command = %(command)s::text;

-- name: take_commands
UPDATE worker_commands SET acknowledged_at = greatest(clock_timestamp(), created_at)
 WHERE worker_id = %(worker)s::text AND acknowledged_at IS NULL
RETURNING id, worker_id, command, created_at, created_by, acknowledged_at;

-- name: untaken_commands
SELECT id, worker_id, command, created_at, created_by, acknowledged_at FROM worker_commands
 WHERE worker_id = %(worker)s::text AND acknowledged_at IS NULL ORDER BY id;

-- name: acknowledge_commands
UPDATE worker_commands SET acknowledged_at = greatest(clock_timestamp(), created_at)
 WHERE worker_id = %(worker)s::text AND id = ANY (%(ids)s::bigint[]) AND acknowledged_at IS NULL;

-- name: list_workers
SELECT worker_id, friendly_name, pod, host, pid, roles, status, started_at, last_heartbeat_at, heartbeat
  FROM worker_registry
 WHERE %(all)s::boolean OR status <> 'stopped'
 ORDER BY started_at, worker_id;
