-- Why a task is in its current state: the facts.

-- name: live_task_facts
-- A live task with what blocks it: the head of its role and store, and the task that works on its store.
SELECT t.id, t.role, t.dispensary_id, t.state::text AS state, clock_timestamp() AS now, t.scheduled_for, t.worker_id, t.claimed_at, t.started_at,
       t.last_heartbeat_at, t.error_message, t.attempt, t.retry_count, t.max_retries, t.postpone_count,
       CASE WHEN t.state = 's' THEN t.postpone_code END AS postpone_code, CASE WHEN t.state = 's' THEN t.postpone_host END AS postpone_host,
       t.blocked_by,
       (SELECT r.friendly_name FROM worker_registry r WHERE r.worker_id = t.worker_id) AS worker_name,
       live_task_status(t.state, t.claimed_at, t.started_at, t.last_heartbeat_at, (SELECT stale_before())) AS status,
       extract(epoch FROM worker_alive_for())::double precision AS alive_seconds,
       extract(epoch FROM now() - (SELECT stale_before()))::double precision AS stale_seconds,
       (SELECT json_build_object('id', h.id, 'role', h.role, 'worker_id', h.worker_id, 'worker_name', hw.friendly_name,
                                 'claimed_at', h.claimed_at) FROM task_live h
          LEFT JOIN worker_registry hw ON hw.worker_id = h.worker_id
         WHERE h.state IN ('r', 'a') AND h.dispensary_id = t.dispensary_id AND h.role = t.role AND h.id <> t.id) AS head,
       (SELECT json_build_object('id', a.id, 'role', a.role, 'worker_id', a.worker_id, 'worker_name', aw.friendly_name,
                                 'claimed_at', a.claimed_at) FROM task_live a
          LEFT JOIN worker_registry aw ON aw.worker_id = a.worker_id
         WHERE a.state = 'a' AND a.dispensary_id = t.dispensary_id AND a.id <> t.id) AS holder,
       (SELECT count(*) FROM task_live p
         WHERE p.dispensary_id = t.dispensary_id AND p.role = t.role AND p.id <> t.id
           AND (p.state IN ('r', 'a')
                OR (p.state = 'p' AND (-p.priority, p.created_at, p.id) < (-t.priority, t.created_at, t.id)))) AS ahead
  FROM live_tasks t WHERE t.id = %(id)s;

-- name: finished_task_facts
SELECT id, role, status, dispensary_id, clock_timestamp() AS now, scheduled_for, worker_id, claimed_at, started_at, completed_at,
       (SELECT r.friendly_name FROM worker_registry r WHERE r.worker_id = task_history.worker_id) AS worker_name,
       last_heartbeat_at, error_message, attempt, retry_count, max_retries, postpone_count
  FROM task_history WHERE id = %(id)s;

-- name: worker_facts
-- Workers that have not stopped, with how many tasks each has and what keeps it from claiming.
SELECT w.worker_id, w.friendly_name, w.roles, w.status,
       extract(epoch FROM clock_timestamp() - w.last_heartbeat_at)::double precision AS silent,
       worker_alive(w.status, w.last_heartbeat_at) AS alive,
       CASE WHEN jsonb_typeof(w.heartbeat -> 'max_concurrent_tasks') = 'number' THEN worker_slots(w.heartbeat) END AS slots,
       coalesce(a.n, 0) AS active,
       CASE WHEN jsonb_typeof(w.heartbeat -> 'paused_roles') = 'array'
            THEN ARRAY(SELECT jsonb_array_elements_text(w.heartbeat -> 'paused_roles')) ELSE '{}' END AS paused_roles,
       coalesce(w.heartbeat ->> 'paused_roles_reason', w.heartbeat -> 'resources' ->> 'backoff_reason') AS reason,
       w.heartbeat ->> 'paused_roles_code' AS paused_roles_code
  FROM worker_registry w
  LEFT JOIN (SELECT t.worker_id, count(*) AS n FROM task_live t WHERE t.state = 'a' GROUP BY t.worker_id) a ON a.worker_id = w.worker_id
 WHERE w.status <> 'stopped'
 ORDER BY w.started_at, w.worker_id;

-- name: tasks_before
-- How many due tasks of these roles are claimed before this one, counted up to `most`. What has come due and was not claimed since is
-- still 's': of each store and role the next one counts, as it will stand in the line, unless another one does already.
SELECT least(ready.n + due.n, %(most)s)::integer AS n
  FROM task_live t
 CROSS JOIN LATERAL (
    SELECT sum((SELECT count(*) FROM (
              SELECT FROM task_live b
               WHERE b.state = 'r' AND b.role = r.role
                 AND (-(b.priority + b.aged), b.created_at, b.id) < (-(t.priority + t.aged), t.created_at, t.id)
               LIMIT %(most)s) x)) AS n
      FROM unnest(%(roles)s::text[]) r(role)) ready
 CROSS JOIN LATERAL (
    SELECT count(DISTINCT CASE WHEN x.dispensary_id IS NULL THEN x.id::text ELSE x.dispensary_id || x.role END) AS n
      FROM (
        SELECT b.id, b.dispensary_id, b.role FROM task_live b
         WHERE b.state = 's' AND b.scheduled_for <= clock_timestamp() AND b.role = ANY (%(roles)s::text[])
           AND (-(b.priority + b.aged), b.created_at, b.id) < (-(t.priority + t.aged), t.created_at, t.id)
           AND NOT EXISTS (SELECT FROM task_live h WHERE h.state IN ('r', 'a') AND h.dispensary_id = b.dispensary_id AND h.role = b.role)
         LIMIT %(most)s) x) due
 WHERE t.id = %(id)s;

-- name: host_facts
-- Whether these hosts are asked now; of those that were never asked nothing is known, and they may be.
SELECT n.host, c.code, c.reason, c.until
  FROM unnest(%(hosts)s::text[]) n(host)
  LEFT JOIN hosts h ON h.host = n.host
  LEFT JOIN LATERAL host_block_reason(h, clock_timestamp()) c ON h.host IS NOT NULL
 ORDER BY n.host;

-- name: active_proxies
SELECT count(*) AS n FROM proxies WHERE is_active;
