-- What workers did in the last hours.

-- name: ended_bars
-- Newest first, so that of too many the oldest are missing. Days before `since` are not looked at.
SELECT h.id, h.role, h.dispensary_id, h.status, h.worker_id, h.started_at AS start, h.completed_at AS "end"
  FROM task_history h
 WHERE h.completed_at >= %(since)s::timestamptz AND h.started_at IS NOT NULL AND h.worker_id IS NOT NULL
   AND (%(workers)s::text[] IS NULL OR h.worker_id = ANY (%(workers)s))
 ORDER BY h.completed_at DESC, h.id DESC LIMIT %(limit)s;

-- name: open_bars
-- What is worked on now. A task shows as begun from its first heartbeat on; until then its claim stands for its start.
SELECT t.id, t.role, t.dispensary_id,
       CASE WHEN coalesce(t.last_heartbeat_at, t.claimed_at) < now() - interval '10 minutes' THEN 'stale'
            WHEN t.started_at IS NULL THEN 'claimed' ELSE 'running' END AS status,
       t.worker_id, coalesce(t.started_at, t.claimed_at) AS start, NULL::timestamptz AS "end"
  FROM task_live t
 WHERE t.state = 'a' AND (%(workers)s::text[] IS NULL OR t.worker_id = ANY (%(workers)s))
 ORDER BY t.id LIMIT %(limit)s;

-- name: crew_of_pod
SELECT worker_id FROM worker_registry WHERE pod = %(pod)s::text;

-- name: names_of_workers
SELECT worker_id, friendly_name, pod, status, started_at, last_heartbeat_at FROM worker_registry WHERE worker_id = ANY (%(ids)s::text[]);
