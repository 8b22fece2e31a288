-- Workers alive now.

-- name: count_live
SELECT count(*)::integer AS n, count(DISTINCT coalesce(pod, host))::integer AS pods
  FROM worker_registry WHERE worker_alive(status, last_heartbeat_at);
