-- Tasks, through the functions and the view of the schema (06_tasks.sql to 11_task_statistics.sql). `%(name)s` are the parameters.

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
SELECT id, attempt FROM beat_tasks(%(worker)s::text, %(ids)s::bigint[], %(attempts)s::integer[], %(ran)s::double precision[]);

-- name: hold
-- The fence: locks the row for the rest of the transaction if this attempt is still this worker's. Those who only want to
-- park behind it are not kept waiting.
SELECT t.id FROM task_live t
 WHERE t.id = %(id)s::bigint AND t.worker_id = %(worker)s::text AND t.attempt = %(attempt)s::integer
   FOR NO KEY UPDATE;

-- name: finish
SELECT id, status
  FROM finish_tasks(%(worker)s::text, %(ids)s::bigint[], %(attempts)s::integer[], %(verbs)s::text[], %(reasons)s::text[],
                    %(results)s::text[]::jsonb[], %(waits)s::double precision[], %(due)s::timestamptz[], %(ran)s::double precision[],
                    %(codes)s::text[], %(hosts)s::text[]);

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
                   %(roles)s::text[], %(n)s::integer, %(fair)s::integer, %(low)s::integer[], %(since)s::timestamptz[], %(past)s::bigint[],
                   %(codes)s::text[], %(hosts)s::text[]);

-- name: age
-- Raises what has waited long.
SELECT age_tasks();

-- name: cancel
SELECT cancel_tasks(%(ids)s::bigint[], %(reason)s::text);

-- name: set_stale_after
INSERT INTO queue_settings AS s (stale_after) VALUES (make_interval(secs => %(minutes)s::double precision * 60))
    ON CONFLICT (singleton) DO UPDATE SET stale_after = excluded.stale_after WHERE s.stale_after IS DISTINCT FROM excluded.stale_after;

-- name: set_retry_base
UPDATE queue_settings SET retry_base = make_interval(secs => %(seconds)s::double precision)
 WHERE retry_base <> make_interval(secs => %(seconds)s::double precision);

-- name: set_platform_hosts
UPDATE queue_settings SET platform_hosts = %(hosts)s::text::jsonb WHERE platform_hosts <> %(hosts)s::text::jsonb;

-- name: recover_stale
SELECT recover_stale_tasks(coalesce(%(minutes)s::numeric, (SELECT extract(epoch FROM stale_after) / 60 FROM queue_settings)));

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

-- name: unfinished
-- What a worker that runs until idle still waits for: everything but first attempts that are not due yet.
SELECT count(*) FROM task_live
 WHERE (%(roles)s::text[] IS NULL OR role = ANY (%(roles)s::text[]))
   AND (state <> 's' OR attempt > 0 OR scheduled_for <= clock_timestamp());

-- name: held_by
-- What this worker owns, as the database sees it.
SELECT id, attempt FROM task_live WHERE state = 'a' AND worker_id = %(worker)s::text;

-- name: ended_by
-- Whether this very attempt is in the history as ended by this worker.
SELECT status FROM task_history
 WHERE id = %(id)s::bigint AND attempt = %(attempt)s::integer AND worker_id = %(worker)s::text AND status <> 'cancelled';

-- name: capacity
SELECT role, pending_tasks, ready_tasks, claimed_tasks, running_tasks, completed_last_hour, failed_last_hour, active_workers,
       avg_duration_sec, tasks_per_worker_hour, estimated_hours_to_drain, blocked_tasks, blocked_by
  FROM v_worker_capacity WHERE %(role)s::text IS NULL OR role = %(role)s::text;
