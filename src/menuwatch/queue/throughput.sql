-- Tasks that came and ended, by intervals. A task is in the history from when it ended, so those that came in this time are there or live.
-- With the roles named, the index on (role, completed_at) bounds the read.

-- name: ended
-- Duration of completed tasks, and wait of all that were claimed, from when they were due (of a retried task: its last attempt).
SELECT date_bin(%(step)s::interval, h.completed_at, '2000-01-01Z') AS start,
       count(*) FILTER (WHERE h.status = 'completed') AS completed, count(*) FILTER (WHERE h.status = 'failed') AS failed,
       percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY h.completed_at - h.started_at) FILTER (WHERE h.status = 'completed') AS durations,
       percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY h.claimed_at - greatest(h.created_at, h.scheduled_for)) AS waits
  FROM task_history h WHERE h.role = ANY (task_roles(NULL)) AND h.completed_at >= %(since)s::timestamptz GROUP BY 1;

-- name: enqueued
SELECT start, sum(n)::bigint AS enqueued FROM (
  SELECT date_bin(%(step)s::interval, h.created_at, '2000-01-01Z') AS start, count(*) AS n
    FROM task_history h WHERE h.role = ANY (task_roles(NULL)) AND h.completed_at >= %(since)s::timestamptz AND h.created_at >= %(since)s GROUP BY 1
  UNION ALL
  SELECT date_bin(%(step)s::interval, t.created_at, '2000-01-01Z'), count(*)
    FROM task_live t WHERE t.created_at >= %(since)s GROUP BY 1) a
 GROUP BY start;

-- name: ended_by
-- The same of tasks that ended, by role, by the hosts that they request, or by the pod of the worker that had them. An empty `part`:
-- they request no host, or the pod is not known.
SELECT date_bin(%(step)s::interval, h.completed_at, '2000-01-01Z') AS start,
       coalesce(CASE %(by)s::text WHEN 'role' THEN h.role
                                  WHEN 'host' THEN CASE WHEN h.role = ANY (%(network)s::text[]) THEN p.hosts END
                                  WHEN 'pod' THEN w.pod END, '') AS part,
       count(*) AS ended,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY h.completed_at - h.started_at) FILTER (WHERE h.status = 'completed') AS duration,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY h.claimed_at - greatest(h.created_at, h.scheduled_for)) AS wait
  FROM task_history h
  LEFT JOIN (SELECT e.key, (SELECT string_agg(x, ', ') FROM jsonb_array_elements_text(e.value) x) AS hosts
               FROM queue_settings s, jsonb_each(s.platform_hosts) e WHERE %(by)s = 'host') p ON p.key = h.platform
  LEFT JOIN (SELECT g.worker_id, g.pod FROM worker_registry g WHERE %(by)s = 'pod') w ON w.worker_id = h.worker_id
 WHERE h.role = ANY (task_roles(NULL)) AND h.completed_at >= %(since)s::timestamptz GROUP BY 1, 2;
