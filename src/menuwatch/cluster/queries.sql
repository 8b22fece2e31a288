-- The one row of `worker_supervision`: what people order, and what the supervisor that holds it says.

-- name: standing
SELECT wanted, holder, host, pid, place, low, high, running, starting, leaving, trouble,
       holder IS NOT NULL AND held_until > clock_timestamp() AS held
  FROM worker_supervision;

-- name: lock_standing
SELECT wanted, holder, host, pid, place, low, high, running, starting, leaving, trouble,
       holder IS NOT NULL AND held_until > clock_timestamp() AS held
  FROM worker_supervision FOR NO KEY UPDATE;

-- name: order_workers
UPDATE worker_supervision SET wanted = %(wanted)s::integer;

-- name: take_hold
-- `dead` is a holder that is known to have died before its time was over. What was ordered outlives the holder; `asked` comes before
-- it, and `first` is for when nobody ever ordered. One that may run fewer does not promise more.
UPDATE worker_supervision
   SET holder = %(holder)s::text, host = %(host)s::text, pid = %(pid)s::integer, place = %(place)s::text,
       held_until = clock_timestamp() + make_interval(secs => %(lasting)s::double precision),
       low = %(low)s::integer, high = %(high)s::integer, running = 0, starting = 0, leaving = 0, trouble = NULL,
       wanted = least(coalesce(%(asked)s::integer, wanted, %(first)s::integer), %(high)s::integer)
 WHERE holder IS NULL OR held_until <= clock_timestamp() OR holder = %(dead)s::text
RETURNING wanted;

-- name: keep_hold
-- One whose time was over keeps it where nobody else has taken it. `left` are workers that somebody told to leave: so many fewer are
-- wanted, unless another number was ordered than the one that was `obeyed`.
UPDATE worker_supervision
   SET held_until = clock_timestamp() + make_interval(secs => %(lasting)s::double precision),
       running = %(running)s::integer, starting = %(starting)s::integer, leaving = %(leaving)s::integer, trouble = %(trouble)s::text,
       wanted = CASE WHEN wanted = %(obeyed)s::integer THEN greatest(wanted - %(left)s::integer, 0) ELSE wanted END
 WHERE holder = %(holder)s::text
RETURNING wanted;

-- name: let_go
UPDATE worker_supervision
   SET holder = NULL, host = NULL, pid = NULL, place = NULL, held_until = NULL, low = NULL, high = NULL,
       running = 0, starting = 0, leaving = 0, trouble = NULL
 WHERE holder = %(holder)s::text;

-- name: crew
-- What the registry has of these processes, each since it was started; the clocks of the two machines may differ a little.
SELECT DISTINCT ON (w.pid) w.pid, w.worker_id, w.friendly_name AS name,
       EXISTS (SELECT FROM worker_commands c WHERE c.worker_id = w.worker_id AND c.command = 'decommission') AS told,
       (SELECT count(*)::integer FROM task_live t WHERE t.worker_id = w.worker_id AND t.state = 'a') AS tasks
  FROM unnest(%(pids)s::integer[], %(since)s::timestamptz[]) p(pid, since)
  JOIN worker_registry w ON w.pid = p.pid AND w.host = %(host)s::text AND w.started_at >= p.since - interval '1 minute'
 ORDER BY w.pid, w.started_at DESC;

-- name: pod_order
SELECT wanted, trouble, wanted IS NOT NULL AND coalesce(looked_at, ordered_at) < now() - interval '30 seconds' AS late FROM pod_order;

-- name: take_pod_order
UPDATE pod_order SET looked_at = clock_timestamp()
 WHERE singleton IN (SELECT o.singleton FROM pod_order o WHERE o.wanted IS NOT NULL FOR NO KEY UPDATE SKIP LOCKED)
RETURNING wanted;

-- name: place_pod_order
UPDATE pod_order SET wanted = %(wanted)s::integer, ordered_at = now(), looked_at = NULL, trouble = NULL;

-- name: hinder_pod_order
UPDATE pod_order SET trouble = left(%(trouble)s::text, 500) WHERE wanted IS NOT NULL AND trouble IS DISTINCT FROM left(%(trouble)s::text, 500);

-- name: end_pod_order
UPDATE pod_order SET wanted = NULL, ordered_at = NULL, looked_at = NULL, trouble = NULL;

-- name: living_in_pods
-- Who has been silent for two minutes holds nothing up: its tasks are taken back.
SELECT w.worker_id, w.host,
       w.status = 'stopping' OR EXISTS (
         SELECT FROM worker_commands c
          WHERE c.worker_id = w.worker_id AND c.command = 'decommission' AND c.created_at >= w.started_at) AS told,
       (SELECT count(*)::integer FROM task_live t WHERE t.worker_id = w.worker_id AND t.state = 'a') AS tasks
  FROM worker_registry w
 WHERE w.host = ANY (%(hosts)s::text[]) AND w.status <> 'stopped' AND w.last_heartbeat_at > now() - interval '2 minutes'
 ORDER BY w.worker_id;
