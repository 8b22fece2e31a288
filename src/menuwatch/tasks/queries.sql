-- Tasks, through the functions and the view of migration 0002. `%(name)s` are the parameters.

-- name: enqueue
-- One round trip for a whole batch; the answer runs parallel to it.
SELECT coalesce(array_agg(id ORDER BY ord), '{}'), coalesce(array_agg(created ORDER BY ord), '{}')
  FROM enqueue_tasks(%(roles)s::text[], %(stores)s::integer[], %(priorities)s::integer[], %(payloads)s::text[]::jsonb[],
                     %(due)s::timestamptz[], %(platforms)s::text[], %(retries)s::integer[], %(alone)s::boolean[], %(wake)s::boolean);

-- name: wake
-- Tells waiting workers that there may be work.
SELECT pg_notify('menuwatch_tasks', '');

-- name: claim
SELECT * FROM claim_tasks(%(roles)s::text[], %(worker)s::text, %(n)s::integer);

-- name: mark_running
-- Shows tasks as running, since `ran` seconds. A row that is locked is being settled or taken away: it is passed over.
UPDATE task_live t SET started_at = greatest(t.claimed_at, clock_timestamp() - make_interval(secs => f.ran)), updated_at = clock_timestamp()
  FROM (SELECT x.id, u.ran FROM unnest(%(ids)s::bigint[], %(attempts)s::integer[], %(ran)s::double precision[]) u(id, attempt, ran)
          JOIN task_live x ON x.id = u.id AND x.attempt = u.attempt
         WHERE x.worker_id = %(worker)s::text AND x.started_at IS NULL ORDER BY x.id FOR NO KEY UPDATE OF x SKIP LOCKED) f
 WHERE t.id = f.id
RETURNING t.id;

-- name: heartbeat
-- Beats for every task a worker holds and says which of them it still owns. A row that is locked is being settled by its
-- owner or taken away by somebody: it is passed over rather than waited for. `ran` is how long each has been running,
-- in seconds: a task shows as running from the first beat after its start.
WITH f AS MATERIALIZED (
  SELECT * FROM unnest(%(ids)s::bigint[], %(attempts)s::integer[], %(ran)s::double precision[]) u(id, attempt, ran)),
free AS MATERIALIZED (
  SELECT t.id, f.ran FROM f JOIN task_live t ON t.id = f.id AND t.attempt = f.attempt
   WHERE t.worker_id = %(worker)s::text FOR NO KEY UPDATE OF t SKIP LOCKED),
beat AS (
  UPDATE task_live t
     SET last_heartbeat_at = clock_timestamp(), updated_at = clock_timestamp(),
         started_at = coalesce(t.started_at, greatest(t.claimed_at, clock_timestamp() - make_interval(secs => free.ran)))
    FROM free WHERE t.id = free.id RETURNING t.id)
SELECT f.id, f.attempt FROM f JOIN task_live t ON t.id = f.id AND t.attempt = f.attempt WHERE t.worker_id = %(worker)s::text;

-- name: hold
-- The fence: locks the row for the rest of the transaction if this attempt is still this worker's. Those who only want to
-- park behind it are not kept waiting.
SELECT t.id FROM task_live t
 WHERE t.id = %(id)s::bigint AND t.worker_id = %(worker)s::text AND t.attempt = %(attempt)s::integer
   FOR NO KEY UPDATE;

-- name: finish
SELECT id, status
  FROM finish_tasks(%(worker)s::text, %(ids)s::bigint[], %(attempts)s::integer[], %(verbs)s::text[], %(reasons)s::text[],
                    %(results)s::text[]::jsonb[], %(waits)s::double precision[], %(due)s::timestamptz[], %(ran)s::double precision[]);

-- name: cycle
-- A worker's round trip: endings, follow-ups, claim.
SELECT id, role, dispensary_id, platform, priority, aged, scheduled_for, claimed_at, retry_count, max_retries, payload, created_at, attempt,
       postpone_count, result, error_message, lost, next_due
  FROM cycle_tasks(%(worker)s::text,
                   %(ids)s::bigint[], %(attempts)s::integer[], %(verbs)s::text[], %(reasons)s::text[], %(results)s::text[]::jsonb[],
                   %(waits)s::double precision[], %(due)s::timestamptz[], %(ran)s::double precision[],
                   %(parents)s::bigint[], %(then_roles)s::text[], %(then_stores)s::integer[], %(then_priorities)s::integer[],
                   %(then_payloads)s::text[]::jsonb[], %(then_due)s::timestamptz[], %(then_platforms)s::text[], %(then_retries)s::integer[],
                   %(then_alone)s::boolean[],
                   %(roles)s::text[], %(n)s::integer, %(fair)s::integer, %(low)s::integer[], %(since)s::timestamptz[], %(past)s::bigint[]);

-- name: age
-- Raises what has waited long.
SELECT age_tasks();

-- name: cancel
SELECT cancel_tasks(%(ids)s::bigint[], %(reason)s::text);

-- name: recover_stale
SELECT recover_stale_tasks(%(minutes)s::numeric);

-- name: unpark_stranded
SELECT unpark_stranded_tasks();

-- name: ensure_partitions
-- History partitions for today and the days ahead.
SELECT count(*) FILTER (WHERE ensure_task_history_partition(now() + make_interval(days => d)))
  FROM generate_series(0, %(days)s::integer) d;

-- name: count_days
-- Counts the tasks of days that are over, once.
SELECT count_task_days();

-- name: get_task
SELECT * FROM worker_tasks WHERE id = %(id)s::bigint;

-- name: list_tasks
-- Newest first; `before` is the last id of the page before.
SELECT * FROM worker_tasks
 WHERE (%(before)s::bigint IS NULL OR id < %(before)s::bigint)
   AND (%(role)s::text IS NULL OR role = %(role)s::text)
   AND (%(status)s::text IS NULL OR status = %(status)s::text)
   AND (%(store)s::integer IS NULL OR dispensary_id = %(store)s::integer)
   AND (%(worker)s::text IS NULL OR worker_id = %(worker)s::text)
 ORDER BY id DESC LIMIT %(limit)s::integer;

-- name: counts
SELECT role, status, count(*) FROM worker_tasks GROUP BY role, status ORDER BY role, status;

-- name: unfinished
-- What a worker that runs until idle still waits for: everything but first attempts that are not due yet.
SELECT count(*) FROM task_live
 WHERE (%(roles)s::text[] IS NULL OR role = ANY (%(roles)s::text[]))
   AND (state <> 's' OR attempt > 0 OR scheduled_for <= clock_timestamp());

-- name: next_due
-- Seconds until the next scheduled task of any role comes due; null when there is none.
SELECT extract(epoch FROM (SELECT t.scheduled_for FROM task_live t WHERE t.state = 's' ORDER BY t.scheduled_for LIMIT 1) - clock_timestamp())::double precision;

-- name: held_by
-- What this worker owns, as the database sees it.
SELECT id, attempt FROM task_live WHERE state = 'a' AND worker_id = %(worker)s::text;

-- name: ended_by
-- Whether this very attempt is in the history as ended by this worker.
SELECT status FROM task_history
 WHERE id = %(id)s::bigint AND attempt = %(attempt)s::integer AND worker_id = %(worker)s::text AND status <> 'cancelled';

-- name: capacity
SELECT role, pending_tasks, ready_tasks, claimed_tasks, running_tasks, completed_last_hour, failed_last_hour, active_workers,
       avg_duration_sec, tasks_per_worker_hour, estimated_hours_to_drain
  FROM v_worker_capacity WHERE %(role)s::text IS NULL OR role = %(role)s::text;
