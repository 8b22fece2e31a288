-- When schedules fire and fired, for people.

-- name: runs_of_schedule
-- Newest first, those before that one.
SELECT fire_at, ran_at, task_count, error FROM schedule_runs
 WHERE schedule_id = %(id)s AND (%(before)s::timestamptz IS NULL OR fire_at < %(before)s)
 ORDER BY fire_at DESC LIMIT %(limit)s;

-- name: run_counts
-- Of the last 30 days.
SELECT count(*) AS runs, count(*) FILTER (WHERE error IS NULL) AS succeeded FROM schedule_runs
 WHERE schedule_id = %(id)s AND fire_at > now() - interval '30 days';

-- name: planned_crawls
-- A day's crawls may lie on the day before or after in UTC.
SELECT date_bin(%(step)s::interval, p.scheduled_for, %(since)s::timestamptz) AS start, count(*) AS n
  FROM resync_plan p
 WHERE p.day BETWEEN %(since)s::timestamptz::date - 1 AND %(until)s::timestamptz::date + 1
   AND p.scheduled_for >= %(since)s AND p.scheduled_for < %(until)s
 GROUP BY 1 ORDER BY 1;

-- name: crawlable_stores
SELECT count(*) AS n FROM dispensaries WHERE crawl_enabled AND platform_dispensary_id IS NOT NULL;
