-- Who works on what, by pod.

-- name: crew_now
-- Workers that have not stopped, by pod and name; of those without a pod their host stands for it. `told` is what they have not taken yet.
SELECT w.worker_id, w.friendly_name, coalesce(w.pod, w.host) AS pod, w.host, w.pid, w.roles, w.status, w.started_at, w.last_heartbeat_at,
       w.last_heartbeat_at > now() - interval '2 minutes' AS alive,
       greatest(extract(epoch FROM now() - w.last_heartbeat_at), 0)::double precision AS silent_seconds, w.heartbeat, w.version,
       coalesce(a.task_ids, '{}') AS task_ids,
       coalesce((SELECT array_agg(c.command ORDER BY c.id) FROM worker_commands c
                  WHERE c.worker_id = w.worker_id AND c.acknowledged_at IS NULL), '{}') AS told
  FROM worker_registry w
  LEFT JOIN (SELECT t.worker_id, array_agg(t.id ORDER BY t.id) AS task_ids FROM task_live t WHERE t.state = 'a' GROUP BY t.worker_id) a
    ON a.worker_id = w.worker_id
 WHERE w.status <> 'stopped'
 ORDER BY coalesce(w.pod, w.host), w.friendly_name, w.worker_id LIMIT %(limit)s;

-- name: gone_lately
-- Workers that stopped in the last day, the latest first.
SELECT w.worker_id, w.friendly_name, coalesce(w.pod, w.host) AS pod, w.started_at, w.last_heartbeat_at
  FROM worker_registry w
 WHERE w.status = 'stopped' AND w.last_heartbeat_at > now() - interval '24 hours'
 ORDER BY w.last_heartbeat_at DESC, w.worker_id LIMIT %(limit)s;

-- name: held_now
-- What is worked on, longest first; of these workers only, where they are given.
SELECT t.id, t.role, t.dispensary_id, d.name AS store, t.worker_id, w.friendly_name AS worker, coalesce(w.pod, w.host) AS pod, t.attempt,
       CASE WHEN coalesce(t.last_heartbeat_at, t.claimed_at) < now() - interval '10 minutes' THEN 'stale'
            WHEN t.started_at IS NULL THEN 'claimed' ELSE 'running' END AS status,
       coalesce(t.started_at, t.claimed_at) AS since
  FROM task_live t
  LEFT JOIN worker_registry w ON w.worker_id = t.worker_id
  LEFT JOIN dispensaries d ON d.id = t.dispensary_id
 WHERE t.state = 'a' AND (%(workers)s::text[] IS NULL OR t.worker_id = ANY (%(workers)s))
 ORDER BY coalesce(t.started_at, t.claimed_at), t.id LIMIT %(limit)s;

-- name: next_ready
-- What is taken next, in the order of claiming: of each role the first, by the index that claiming uses.
SELECT n.id, n.role, n.dispensary_id, d.name AS store, n.priority, n.aged, n.created_at, n.attempt
  FROM (SELECT t.* FROM unnest(task_roles(NULL)) r(role)
         CROSS JOIN LATERAL (
           SELECT i.id, i.role, i.dispensary_id, i.priority, i.aged, i.created_at, i.attempt FROM task_live i
            WHERE i.role = r.role AND i.state = 'r' ORDER BY -(i.priority + i.aged), i.created_at, i.id LIMIT %(limit)s) t
         ORDER BY -(t.priority + t.aged), t.created_at, t.id LIMIT %(limit)s) n
  LEFT JOIN dispensaries d ON d.id = n.dispensary_id
 ORDER BY -(n.priority + n.aged), n.created_at, n.id;

-- name: waiting
SELECT count(*) FILTER (WHERE t.state IN ('r', 'p') OR (t.state = 's' AND t.scheduled_for <= now())) AS ready,
       count(*) FILTER (WHERE t.state = 's' AND t.scheduled_for > now()) AS scheduled,
       min(t.scheduled_for) FILTER (WHERE t.state = 's' AND t.scheduled_for > now()) AS next_at
  FROM task_live t WHERE t.state <> 'a';

-- name: pod_names
SELECT DISTINCT pod FROM worker_registry WHERE pod IS NOT NULL ORDER BY pod LIMIT 200;
