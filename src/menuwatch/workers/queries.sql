-- name: register
INSERT INTO worker_registry (worker_id, friendly_name, pod, host, pid, roles)
VALUES (%(worker)s::text, %(name)s::text, %(pod)s::text, %(host)s::text, %(pid)s::integer, %(roles)s::text[])
ON CONFLICT (worker_id) DO UPDATE
   SET status = 'active', started_at = now(), last_heartbeat_at = now(), friendly_name = excluded.friendly_name, pod = excluded.pod,
       host = excluded.host, pid = excluded.pid, roles = excluded.roles;

-- name: beat
-- A worker whose row is gone (registering failed at its start, or somebody cleaned up) enters itself again.
INSERT INTO worker_registry (worker_id, friendly_name, pod, host, pid, roles, status, heartbeat)
VALUES (%(worker)s::text, %(name)s::text, %(pod)s::text, %(host)s::text, %(pid)s::integer, %(roles)s::text[], %(status)s::text,
        %(heartbeat)s::text::jsonb)
ON CONFLICT (worker_id) DO UPDATE SET status = excluded.status, last_heartbeat_at = now(), heartbeat = excluded.heartbeat;

-- name: deregister
UPDATE worker_registry SET status = 'stopped', last_heartbeat_at = now() WHERE worker_id = %(worker)s::text;

-- name: list_workers
SELECT worker_id, friendly_name, pod, host, pid, roles, status, started_at, last_heartbeat_at, heartbeat
  FROM worker_registry
 WHERE %(all)s::boolean OR status <> 'stopped'
 ORDER BY started_at, worker_id;
