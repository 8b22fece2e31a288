-- Who works on what, by pod.

-- name: workers_by_pod
-- Workers that have not stopped, by pod and name; of those without a pod their host stands for it. `pending_commands`: not acknowledged yet.
SELECT w.worker_id, w.friendly_name AS name, coalesce(w.pod, w.host) AS pod, w.host, w.pid, w.roles, w.status, w.started_at, w.last_heartbeat_at,
       worker_alive(w.status, w.last_heartbeat_at) AS alive,
       greatest(extract(epoch FROM now() - w.last_heartbeat_at), 0)::double precision AS silent_seconds, w.heartbeat, w.version,
       coalesce(a.task_ids, '{}') AS task_ids,
       coalesce((SELECT array_agg(c.command ORDER BY c.id) FROM worker_commands c
                  WHERE c.worker_id = w.worker_id AND c.acknowledged_at IS NULL), '{}') AS pending_commands
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
       live_task_status(t.state, t.claimed_at, t.started_at, t.last_heartbeat_at, (SELECT stale_before())) AS status,
       coalesce(t.started_at, t.claimed_at) AS since,
       greatest(extract(epoch FROM now() - coalesce(t.started_at, t.claimed_at)), 0)::double precision AS seconds
  FROM task_live t
  LEFT JOIN worker_registry w ON w.worker_id = t.worker_id
  LEFT JOIN dispensaries d ON d.id = t.dispensary_id
 WHERE t.state = 'a' AND (%(workers)s::text[] IS NULL OR t.worker_id = ANY (%(workers)s))
 ORDER BY coalesce(t.started_at, t.claimed_at), t.id LIMIT %(limit)s;

-- name: next_ready
-- What is taken next, in the order of claiming: of each role the first, by the index that claiming uses. Blocked tasks are not next.
SELECT n.id, n.role, n.dispensary_id, d.name AS store, n.priority, n.aged, n.created_at, n.attempt
  FROM (SELECT t.* FROM unnest(task_roles(NULL)) r(role)
         CROSS JOIN LATERAL (
           SELECT i.id, i.role, i.dispensary_id, i.priority, i.aged, i.created_at, i.attempt FROM live_tasks i
            WHERE i.role = r.role AND i.state = 'r' AND i.wait_state = 'ready' ORDER BY -(i.priority + i.aged), i.created_at, i.id LIMIT %(limit)s) t
         ORDER BY -(t.priority + t.aged), t.created_at, t.id LIMIT %(limit)s) n
  LEFT JOIN dispensaries d ON d.id = n.dispensary_id
 ORDER BY -(n.priority + n.aged), n.created_at, n.id;

-- name: waiting
SELECT count(*) FILTER (WHERE t.wait_state = 'ready') AS ready, count(*) FILTER (WHERE t.wait_state = 'blocked') AS blocked,
       coalesce(array_agg(DISTINCT t.blocked_by ORDER BY t.blocked_by) FILTER (WHERE t.wait_state = 'blocked'), '{}') AS blocked_by,
       count(*) FILTER (WHERE t.wait_state = 'scheduled') AS scheduled, min(t.scheduled_for) FILTER (WHERE t.wait_state = 'scheduled') AS next_at
  FROM live_tasks t WHERE t.state <> 'a';

-- name: pod_names
SELECT DISTINCT pod FROM worker_registry WHERE pod IS NOT NULL ORDER BY pod LIMIT 200;
