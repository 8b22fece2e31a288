-- Schedules and their runs.

-- name: create_missing
INSERT INTO task_schedules (name, role, platform, interval_hours, priority, next_run_at)
VALUES (%(name)s, %(role)s, %(platform)s, %(interval_hours)s, %(priority)s, %(at)s)
ON CONFLICT (name) DO NOTHING;

-- name: list_schedules
SELECT * FROM task_schedules ORDER BY id;

-- name: lock_schedule
SELECT * FROM task_schedules WHERE id = %(id)s FOR UPDATE;

-- name: find_schedule
-- By name or number.
SELECT * FROM task_schedules WHERE name = %(text)s OR id = %(id)s::integer ORDER BY (name = %(text)s) DESC LIMIT 1;

-- name: take_due
-- The one that is due longest; those that another scheduler has in hand are that one's.
SELECT * FROM task_schedules
 WHERE enabled AND next_run_at <= %(now)s AND id <> ALL (%(done)s::integer[])
 ORDER BY next_run_at, id LIMIT 1 FOR UPDATE SKIP LOCKED;

-- name: fire
SELECT fire_schedule(%(id)s::integer, %(fire_at)s::timestamptz, %(at)s::timestamptz, %(next)s::timestamptz);

-- name: note_failed_run
INSERT INTO schedule_runs AS r (schedule_id, fire_at, ran_at, error) VALUES (%(id)s, %(fire_at)s, %(at)s, %(error)s)
ON CONFLICT (schedule_id, fire_at) DO UPDATE SET ran_at = excluded.ran_at, error = excluded.error WHERE r.error IS NOT NULL;

-- name: note_error
UPDATE task_schedules SET last_error = %(error)s, updated_at = now() WHERE id = %(id)s;

-- name: change
UPDATE task_schedules
   SET role = %(role)s, platform = %(platform)s, enabled = %(enabled)s, interval_hours = %(interval_hours)s, priority = %(priority)s,
       state_code = %(state_code)s, next_run_at = %(next_run_at)s, updated_at = now()
 WHERE id = %(id)s RETURNING *;

-- name: generate_resync
SELECT generate_resync_tasks(%(batches)s::integer, %(day)s::date, %(timezone)s::text);

-- name: prune_runs
-- The latest run of each schedule stays, however old.
DELETE FROM schedule_runs r
 WHERE r.fire_at < %(before)s AND EXISTS (SELECT FROM schedule_runs l WHERE l.schedule_id = r.schedule_id AND l.fire_at > r.fire_at);

-- name: prune_plans
DELETE FROM resync_plan WHERE day < %(before)s::timestamptz::date;
