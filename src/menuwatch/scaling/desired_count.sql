-- The one row of `supervisor_lease`: the desired number, and the status that its holder published.

-- piece: lease_columns
desired, holder, host, pid, place, low, high, running, starting, draining, error,
       holder IS NOT NULL AND expires_at > clock_timestamp() AS held

-- name: lease
SELECT {lease_columns}
  FROM supervisor_lease;

-- name: lock_lease
SELECT {lease_columns}
  FROM supervisor_lease FOR NO KEY UPDATE;

-- name: set_desired
UPDATE supervisor_lease SET desired = %(desired)s::integer;

-- name: acquire_lease
-- `dead` is a holder that is known to have died before its time was over. What was ordered outlives the holder; `requested` comes before
-- it, and `first` is used if none was ever set. One that may run fewer does not promise more.
UPDATE supervisor_lease
   SET holder = %(holder)s::text, host = %(host)s::text, pid = %(pid)s::integer, place = %(place)s::text,
       expires_at = clock_timestamp() + make_interval(secs => %(lease_seconds)s::double precision),
       low = %(low)s::integer, high = %(high)s::integer, running = 0, starting = 0, draining = 0, error = NULL,
       desired = least(coalesce(%(requested)s::integer, desired, %(first)s::integer), %(high)s::integer)
 WHERE holder IS NULL OR expires_at <= clock_timestamp() OR holder = %(dead)s::text
RETURNING desired;

-- name: renew_lease
-- An expired lease is kept unless another supervisor took it. `left` workers were decommissioned by operators: so many fewer are
-- desired, unless another number was ordered than the one that was `obeyed`.
UPDATE supervisor_lease
   SET expires_at = clock_timestamp() + make_interval(secs => %(lease_seconds)s::double precision),
       running = %(running)s::integer, starting = %(starting)s::integer, draining = %(draining)s::integer, error = %(error)s::text,
       desired = CASE WHEN desired = %(obeyed)s::integer THEN greatest(desired - %(left)s::integer, 0) ELSE desired END
 WHERE holder = %(holder)s::text
RETURNING desired;

-- name: release_lease
UPDATE supervisor_lease
   SET holder = NULL, host = NULL, pid = NULL, place = NULL, expires_at = NULL, low = NULL, high = NULL,
       running = 0, starting = 0, draining = 0, error = NULL
 WHERE holder = %(holder)s::text;

-- name: members
-- What the registry has of these processes, each since it was started; the clocks of the two machines may differ a little.
SELECT DISTINCT ON (w.pid) w.pid, w.worker_id, w.friendly_name AS name,
       EXISTS (SELECT FROM worker_commands c WHERE c.worker_id = w.worker_id AND c.command = 'decommission'
                AND c.created_at >= w.started_at) AS decommissioned,
       (SELECT count(*)::integer FROM task_live t WHERE t.worker_id = w.worker_id AND t.state = 'a') AS tasks
  FROM unnest(%(pids)s::integer[], %(since)s::timestamptz[]) p(pid, since)
  JOIN worker_registry w ON w.pid = p.pid AND w.host = %(host)s::text AND w.started_at >= p.since - interval '1 minute'
 ORDER BY w.pid, w.started_at DESC;
