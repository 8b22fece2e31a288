-- name: living
SELECT count(*)::integer AS n, count(DISTINCT coalesce(pod, host))::integer AS pods
  FROM worker_registry WHERE status <> 'stopped' AND last_heartbeat_at > now() - interval '2 minutes';
