-- Schedules and their runs.

-- piece: schedule
-- A schedule that is due for longer than two minutes is late, while it is enabled.
*, CASE WHEN enabled AND isfinite(next_run_at) AND now() - next_run_at > interval '2 minutes'
        THEN floor(extract(epoch FROM now() - next_run_at))::bigint ELSE 0 END AS late_seconds

-- name: create
INSERT INTO task_schedules (name, role, platform, interval_hours, cron, timezone, priority, state_code, enabled, next_run_at)
VALUES (%(name)s, %(role)s, %(platform)s, %(interval_hours)s, %(cron)s, %(timezone)s, %(priority)s, %(state_code)s, %(enabled)s, %(at)s)
ON CONFLICT (name) DO NOTHING
RETURNING {schedule};

-- name: remove
DELETE FROM task_schedules WHERE id = %(id)s;

-- name: list_schedules
SELECT {schedule} FROM task_schedules ORDER BY id;

-- name: lock_schedule
SELECT {schedule} FROM task_schedules WHERE id = %(id)s FOR UPDATE;

-- name: find_schedule
-- By name or number.
SELECT {schedule} FROM task_schedules WHERE name = %(text)s OR id = %(id)s::integer ORDER BY (name = %(text)s) DESC LIMIT 1;

-- name: take_due
-- The one that is due longest; those locked by another scheduler are skipped. Only its number: a row that cannot be read (a
-- date that Python has no value for, say) must not keep the others from being found.
SELECT id FROM task_schedules
 WHERE enabled AND next_run_at <= %(now)s AND id <> ALL (%(done)s::integer[])
 ORDER BY next_run_at, id LIMIT 1 FOR UPDATE SKIP LOCKED;

-- name: fire
SELECT fire_schedule(%(id)s::integer, %(fire_at)s::timestamptz, %(at)s::timestamptz, %(next)s::timestamptz, %(zones)s::text[]);

-- name: record_failed_run
INSERT INTO schedule_runs AS r (schedule_id, fire_at, ran_at, error) VALUES (%(id)s, %(fire_at)s, %(at)s, %(error)s)
ON CONFLICT (schedule_id, fire_at) DO UPDATE SET ran_at = excluded.ran_at, error = excluded.error WHERE r.error IS NOT NULL;

-- name: record_error
UPDATE task_schedules SET last_error = %(error)s, updated_at = now() WHERE id = %(id)s;

-- name: correct_next_runs
-- Of schedules that are due further away than one interval: the first time on their grid that is not before now. Nothing of a row is
-- read by the caller but text, so one that holds an odd time is corrected too; a cron schedule gets one that can be read, and its own
-- with far_cron. A process whose clock lags behind the database's must
-- not correct what another one planned rightly: the later of both clocks counts.
WITH moment AS (SELECT greatest(%(now)s::timestamptz, clock_timestamp()) AS now),
far AS (
  SELECT id, next_run_at AS planned, to_char(next_run_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') AS said,
         moment.now + CASE WHEN cron IS NULL
                           THEN make_interval(secs => mod(extract(epoch FROM next_run_at - moment.now), interval_hours * 3600)::double precision)
                           ELSE interval '100 years' END AS nearer
    FROM task_schedules, moment
   WHERE next_run_at > moment.now + CASE WHEN cron IS NULL THEN make_interval(secs => (interval_hours * 3600)::double precision)
                                         ELSE interval '100 years' END + %(slack)s::interval
     FOR UPDATE OF task_schedules SKIP LOCKED)
UPDATE task_schedules s
   SET next_run_at = far.nearer, updated_at = now(),
       last_error = format('The next run (%%s UTC) was further away than one interval. It was moved to %%s UTC.', far.said,
                           to_char(far.nearer AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'))
  FROM far WHERE s.id = far.id
RETURNING s.id, s.name, far.said, s.next_run_at;

-- name: change
UPDATE task_schedules
   SET role = %(role)s, platform = %(platform)s, enabled = %(enabled)s, interval_hours = %(interval_hours)s, priority = %(priority)s,
       state_code = %(state_code)s, cron = %(cron)s, timezone = %(timezone)s,
       paused_at = CASE WHEN NOT %(enabled)s THEN %(paused_at)s::timestamptz END,
       next_run_at = %(next_run_at)s, updated_at = now()
 WHERE id = %(id)s RETURNING {schedule};

-- name: pause_all
UPDATE task_schedules SET enabled = false, paused_at = now(), updated_at = now() WHERE enabled RETURNING name;

-- name: resume_all
UPDATE task_schedules SET enabled = true, paused_at = NULL, updated_at = now() WHERE paused_at IS NOT NULL RETURNING name;

-- name: far_cron
-- Those that run by a cron line and are due later than this. Only their numbers, as in take_due.
SELECT id FROM task_schedules WHERE cron IS NOT NULL AND next_run_at > %(now)s ORDER BY id;

-- name: move
UPDATE task_schedules SET next_run_at = %(at)s, last_error = coalesce(%(error)s, last_error), updated_at = now() WHERE id = %(id)s;

-- name: zones
-- Time zones of the stores that it crawls; '' for those without one.
SELECT DISTINCT coalesce(d.timezone, '') AS zone FROM dispensaries d
 WHERE d.crawl_enabled AND d.platform_dispensary_id IS NOT NULL AND d.platform = %(platform)s
   AND (%(state_code)s::text IS NULL OR d.state = %(state_code)s) ORDER BY 1;

-- name: generate_resync
SELECT generate_resync_tasks(%(batches)s::integer, %(day)s::date, %(timezone)s::text);

-- name: prune_runs
-- The latest run of each schedule stays, however old.
DELETE FROM schedule_runs r
 WHERE r.fire_at < %(before)s AND EXISTS (SELECT FROM schedule_runs l WHERE l.schedule_id = r.schedule_id AND l.fire_at > r.fire_at);

-- name: prune_plans
DELETE FROM resync_plan WHERE day < %(before)s::timestamptz::date;
