-- Moving all objects from one storage to the other.

-- name: live_workers
SELECT count(*) AS n FROM worker_registry WHERE status <> 'stopped' AND worker_alive(status, last_heartbeat_at);

-- name: begin_move
SELECT pg_try_advisory_lock(hashtext('menuwatch storage move')) AS taken;

-- name: end_move
SELECT pg_advisory_unlock(hashtext('menuwatch storage move'));
