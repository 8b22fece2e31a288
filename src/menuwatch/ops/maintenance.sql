-- Maintenance: which jobs are due, and how each run ended.

-- name: lock_maintenance
-- One janitor at a time, whatever the process; others pass it over.
SELECT pg_try_advisory_lock(hashtext('menuwatch'), hashtext('maintenance'));

-- name: unlock_maintenance
SELECT pg_advisory_unlock(hashtext('menuwatch'), hashtext('maintenance'));

-- name: add_jobs
INSERT INTO maintenance_runs (job) SELECT unnest(%(jobs)s::text[]) ON CONFLICT DO NOTHING;

-- name: due_jobs
-- One that was done in the future was done while the clock was wrong. One that failed or was refused is due until it is done. But after
-- any run, also a failed one, a job is not due for `rest` times the duration of that run.
SELECT d.job FROM unnest(%(jobs)s::text[], %(every)s::double precision[], %(rest)s::double precision[]) d(job, every, rest)
  JOIN maintenance_runs m ON m.job = d.job
 WHERE (m.succeeded_at IS NULL OR m.succeeded_at <= clock_timestamp() - make_interval(secs => d.every) OR m.succeeded_at > clock_timestamp()
        OR m.error IS NOT NULL)
   AND (m.duration IS NULL OR m.attempted_at <= clock_timestamp() - d.rest * m.duration OR m.attempted_at > clock_timestamp());

-- name: job_succeeded
UPDATE maintenance_runs SET succeeded_at = clock_timestamp(), attempted_at = clock_timestamp(), duration = %(duration)s::interval, error = NULL
 WHERE job = %(job)s::text;

-- name: job_failed
UPDATE maintenance_runs SET attempted_at = clock_timestamp(), duration = %(duration)s::interval, error = %(error)s::text
 WHERE job = %(job)s::text;

-- name: last_look
SELECT trusted_at, seen_at, ran FROM retention_clock;

-- name: keep_look
INSERT INTO retention_clock (trusted_at, seen_at, ran)
VALUES (%(trusted_at)s::timestamptz, %(seen_at)s::timestamptz, %(ran)s::interval)
ON CONFLICT (singleton) DO UPDATE SET trusted_at = excluded.trusted_at, seen_at = excluded.seen_at, ran = excluded.ran;
