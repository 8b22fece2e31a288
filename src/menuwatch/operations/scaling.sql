-- name: living
SELECT count(*)::integer AS n FROM worker_registry WHERE status <> 'stopped' AND last_heartbeat_at > now() - interval '2 minutes';
