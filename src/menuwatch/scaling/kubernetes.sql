-- The one row of `pod_scale_request`: a requested number of pods until the StatefulSet has it.

-- name: scale_request
SELECT desired, error, desired IS NOT NULL AND coalesce(checked_at, requested_at) < now() - interval '30 seconds' AS late FROM pod_scale_request;

-- name: take_scale_request
UPDATE pod_scale_request SET checked_at = clock_timestamp()
 WHERE singleton IN (SELECT o.singleton FROM pod_scale_request o WHERE o.desired IS NOT NULL FOR NO KEY UPDATE SKIP LOCKED)
RETURNING desired;

-- name: place_scale_request
UPDATE pod_scale_request SET desired = %(desired)s::integer, requested_at = now(), checked_at = NULL, error = NULL;

-- name: set_scale_error
UPDATE pod_scale_request SET error = left(%(error)s::text, 500) WHERE desired IS NOT NULL AND error IS DISTINCT FROM left(%(error)s::text, 500);

-- name: end_scale_request
UPDATE pod_scale_request SET desired = NULL, requested_at = NULL, checked_at = NULL, error = NULL;

-- name: living_in_pods
-- A silent worker delays nothing: its tasks are taken back.
SELECT w.worker_id, w.host,
       w.status = 'stopping' OR EXISTS (
         SELECT FROM worker_commands c
          WHERE c.worker_id = w.worker_id AND c.command = 'decommission' AND c.created_at >= w.started_at) AS decommissioned,
       (SELECT count(*)::integer FROM task_live t WHERE t.worker_id = w.worker_id AND t.state = 'a') AS tasks
  FROM worker_registry w
 WHERE w.host = ANY (%(hosts)s::text[]) AND worker_alive(w.status, w.last_heartbeat_at)
 ORDER BY w.worker_id;
