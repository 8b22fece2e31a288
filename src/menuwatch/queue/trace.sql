-- The trace of a task, beside its requests. Causes are not recorded everywhere: where not, they follow from times and roles.

-- name: task
SELECT id, role, platform, dispensary_id, priority, payload, created_at, started_at, completed_at, claimed_at, status
  FROM worker_tasks WHERE id = %(id)s;

-- name: earlier_attempts
SELECT t.earlier_attempts FROM task_live t WHERE t.id = %(id)s
UNION ALL
SELECT h.earlier_attempts FROM task_history h WHERE h.id = %(id)s;

-- name: requests_by_attempt
SELECT task_attempt AS attempt, count(*) AS requests, count(*) FILTER (WHERE verdict <> 'ok') AS errors
  FROM fetch_attempts WHERE task_id = %(id)s AND task_attempt IS NOT NULL GROUP BY 1;

-- name: sums
SELECT count(*) AS requests, count(*) FILTER (WHERE verdict <> 'ok') AS troubles, count(*) FILTER (WHERE rotated) AS rotations,
       coalesce(sum(bytes), 0)::bigint AS bytes, coalesce(sum(waited_ms), 0)::double precision AS waited_ms,
       coalesce(sum(elapsed_ms), 0)::double precision AS elapsed_ms, min(attempted_at) AS first_at, max(attempted_at) AS last_at
  FROM fetch_attempts WHERE task_id = %(id)s;

-- name: task_of_payload
SELECT p.task_id, w.role FROM raw_crawl_payloads p LEFT JOIN worker_tasks w ON w.id = p.task_id
 WHERE p.id = %(payload_id)s AND p.task_id IS NOT NULL;

-- name: payload_of_task
-- The store's index finds it: a crawl ends with its payload.
SELECT id, status, product_count, fetched_at FROM raw_crawl_payloads
 WHERE dispensary_id = %(dispensary_id)s AND task_id = %(id)s ORDER BY fetched_at DESC, id DESC LIMIT 1;

-- name: refreshes
-- The refreshes of a payload.
SELECT t.id, t.role, t.dispensary_id, t.status, t.created_at FROM worker_tasks t
 WHERE t.dispensary_id = %(dispensary_id)s AND t.role = 'product_refresh' AND t.payload ->> 'payload_id' = %(payload_id)s::bigint::text
   AND t.created_at >= %(since)s
   AND (t.completed_at IS NULL OR t.completed_at >= %(since)s)
 ORDER BY t.id LIMIT 20;

-- name: first_crawl
-- The first crawl of a store that the task resolved: it was enqueued within the transaction that ended the task.
SELECT t.id, t.role, t.dispensary_id, t.status, t.created_at FROM worker_tasks t
 WHERE t.dispensary_id = %(dispensary_id)s AND t.role = 'product_discovery'
   AND t.created_at BETWEEN %(completed_at)s::timestamptz - interval '5 seconds' AND %(completed_at)s
   AND (t.completed_at IS NULL OR t.completed_at >= %(completed_at)s)
 ORDER BY t.id LIMIT 5;

-- name: before_first_crawl
-- What found the store: it ended in the transaction that enqueued its first crawl.
SELECT h.id AS task_id, h.role FROM task_history h
 WHERE h.completed_at BETWEEN %(created_at)s AND %(created_at)s::timestamptz + interval '5 seconds'
   AND ((h.role = 'entry_point_discovery' AND h.dispensary_id = %(dispensary_id)s) OR (h.role = 'store_discovery'))
   AND h.status = 'completed'
 ORDER BY (h.role = 'entry_point_discovery') DESC, h.completed_at LIMIT 1;

-- name: fired_by
-- The firing of a schedule that enqueued it.
SELECT s.name, r.ran_at FROM schedule_runs r JOIN task_schedules s ON s.id = r.schedule_id
 WHERE s.role = %(role)s AND s.platform = %(platform)s AND s.priority = %(priority)s AND r.error IS NULL AND r.task_count > 0
   AND r.ran_at BETWEEN %(created_at)s::timestamptz - interval '5 seconds' AND %(created_at)s::timestamptz + interval '5 seconds'
 ORDER BY abs(extract(epoch FROM r.ran_at - %(created_at)s::timestamptz)) LIMIT 1;

-- name: planned_by
SELECT day FROM resync_plan WHERE dispensary_id = %(dispensary_id)s AND task_id = %(id)s
   AND day BETWEEN %(created_at)s::timestamptz::date - 2 AND %(created_at)s::timestamptz::date + 8 LIMIT 1;

-- name: events
-- Events of the hosts that it requested, meanwhile.
SELECT host, kind, reason, until, happened_at FROM host_events
 WHERE host = ANY (%(hosts)s::text[]) AND kind IN ('cooldown', 'rate_reduced', 'circuit_opened', 'circuit_closed')
   AND happened_at BETWEEN %(since)s AND %(until)s
 ORDER BY happened_at, id LIMIT %(limit)s;
