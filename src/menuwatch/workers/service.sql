-- Read models of workers.

-- piece: worker_columns
w.worker_id, w.friendly_name, w.pod, w.host, w.pid, w.roles, w.status,
       worker_alive(w.status, w.last_heartbeat_at) AS alive,
       round(greatest(extract(epoch FROM now() - w.last_heartbeat_at), 0)::numeric, 1)::double precision AS silent_seconds,
       w.started_at, w.last_heartbeat_at, w.heartbeat, w.version,
       coalesce((SELECT array_agg(c.command ORDER BY c.id) FROM worker_commands c
                  WHERE c.worker_id = w.worker_id AND c.acknowledged_at IS NULL), '{}') AS pending_commands

-- name: list_workers
-- Newest start first.
SELECT {worker_columns}
  FROM worker_registry w
 WHERE (%(statuses)s::text[] IS NULL OR w.status = ANY (%(statuses)s))
   AND (%(alive)s::boolean IS NULL
        OR worker_alive(w.status, w.last_heartbeat_at) = %(alive)s)
   AND (%(role)s::text IS NULL OR w.roles IS NULL OR %(role)s = ANY (w.roles))
   AND (%(pod)s::text IS NULL OR w.pod = %(pod)s)
   AND (%(after_at)s::timestamptz IS NULL OR (w.started_at, w.worker_id) < (%(after_at)s, %(after_id)s::text))
 ORDER BY w.started_at DESC, w.worker_id DESC LIMIT %(limit)s;

-- name: get_worker
SELECT {worker_columns}
  FROM worker_registry w WHERE w.worker_id = %(id)s::text;

-- name: commands_of_worker
-- Newest first.
SELECT id, command, created_at, created_by, acknowledged_at FROM worker_commands
 WHERE worker_id = %(id)s::text ORDER BY id DESC LIMIT 20;

-- name: last_hour
-- Tasks that workers finished in the last hour, by five minutes: 11 is the latest. Read by role and time, as the index has them.
SELECT h.worker_id, 11 - floor(extract(epoch FROM now() - h.completed_at) / 300)::integer AS slot,
       count(*) FILTER (WHERE h.status = 'completed')::integer AS completed, count(*) FILTER (WHERE h.status = 'failed')::integer AS failed
  FROM unnest(task_roles(NULL)) r(role)
  JOIN task_history h ON h.role = r.role AND h.completed_at > now() - interval '1 hour' AND h.completed_at <= now()
 WHERE h.worker_id = ANY (%(ids)s::text[]) AND h.status IN ('completed', 'failed')
 GROUP BY 1, 2;

-- name: workers_by_role
-- A worker that takes all roles counts for each. `claiming` are those of the living that claim the role at this moment.
SELECT r.role,
       count(w.worker_id) AS live_workers,
       count(w.worker_id) FILTER (WHERE w.status = 'active' AND NOT coalesce(w.heartbeat -> 'paused_roles', '[]') ? r.role)
         AS claiming_workers,
       coalesce(sum(worker_slots(w.heartbeat)) FILTER (WHERE w.worker_id IS NOT NULL), 0)::bigint
         AS slots
  FROM unnest(task_roles(NULL)) WITH ORDINALITY r(role, place)
  LEFT JOIN worker_registry w
    ON worker_alive(w.status, w.last_heartbeat_at) AND (w.roles IS NULL OR r.role = ANY (w.roles))
 GROUP BY r.role, r.place
 ORDER BY r.place;

-- name: workers_called
-- Of those that have not stopped: by id, by name, or by pod and name.
SELECT worker_id, concat_ws('/', pod, friendly_name) || ' (' || worker_id || ')' AS label FROM worker_registry
 WHERE worker_id = %(text)s::text
    OR (status <> 'stopped' AND (lower(friendly_name) = lower(%(text)s::text) OR lower(pod || '/' || friendly_name) = lower(%(text)s::text)))
 ORDER BY worker_id = %(text)s::text DESC, started_at, worker_id;
