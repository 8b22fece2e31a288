-- Tasks counted, in an installation of millions.

-- name: all_tasks
-- Days that are over were counted (task_days); the others, and what is live, are counted now. Which days these are is found out first,
-- whatever the planner expects of names in pg_class: else it may count every day, and see afterwards which were counted before.
WITH days AS MATERIALIZED (SELECT d.day, EXISTS (SELECT FROM task_days t WHERE t.day = d.day) AS counted FROM task_history_days d),
open AS MATERIALIZED (SELECT d.day FROM days d WHERE NOT d.counted)
SELECT x.role, x.status, sum(x.n)::bigint AS n FROM (
  SELECT t.role, t.platform,
         live_task_status(t.state, t.claimed_at, t.started_at, t.last_heartbeat_at, (SELECT stale_before())) AS status, count(*) AS n
    FROM task_live t GROUP BY 1, 2, 3
  UNION ALL
  SELECT c.role, c.platform, c.status, c.n FROM task_day_counts c JOIN days d USING (day)
  UNION ALL
  SELECT e.role, e.platform, e.status, e.n
    FROM open d
   CROSS JOIN LATERAL (
      SELECT h.role, h.platform, h.status, count(*) AS n FROM task_history h
       WHERE h.completed_at >= d.day::timestamp AT TIME ZONE 'UTC' AND h.completed_at < (d.day + 1)::timestamp AT TIME ZONE 'UTC' GROUP BY 1, 2, 3) e) x
 WHERE (%(roles)s::text[] IS NULL OR x.role = ANY (%(roles)s))
   AND (%(statuses)s::text[] IS NULL OR x.status = ANY (%(statuses)s))
   AND (%(platform)s::text IS NULL OR x.platform = %(platform)s)
 GROUP BY 1, 2;

-- Below, for the tabs of a list: counted up to a number, and planned at each execution, as lists are (task_list.sql).

-- piece: which
-- Which tasks, with any outcome.
AND (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s))
AND (%(roles)s::text[] IS NULL OR role = ANY (%(roles)s))
AND (%(dispensary_id)s::integer IS NULL OR dispensary_id = %(dispensary_id)s)
AND (%(platform)s::text IS NULL OR platform = %(platform)s)

-- piece: says
-- Whether the reason holds these texts. What is plain ASCII, as nearly all of it is, is looked for in half the time (as in task_list.sql).
CASE WHEN %(ascii_patterns)s::text[] IS NOT NULL THEN lower(error_message COLLATE "C") LIKE ALL (%(ascii_patterns)s) ELSE error_message ILIKE ALL (%(errors)s) END

-- piece: live_when
-- When it was enqueued, and by whom it is done, of what is not over: nothing of it has ended.
AND (%(created_after)s::timestamptz IS NULL OR created_at >= %(created_after)s)
AND (%(created_before)s::timestamptz IS NULL OR created_at < %(created_before)s)
AND (%(worker_ids)s::text[] IS NULL OR worker_id = ANY (%(worker_ids)s))
AND (%(took_over)s::float8 IS NULL OR now() - started_at > make_interval(secs => %(took_over)s))
AND (%(took_under)s::float8 IS NULL OR now() - started_at < make_interval(secs => %(took_under)s))
AND (%(ended_after)s::timestamptz IS NULL AND %(ended_before)s::timestamptz IS NULL AND %(cause)s::text IS NULL)

-- piece: asked
-- How urgent it is, and what it was given to do.
AND (%(priority_min)s::integer IS NULL OR priority >= %(priority_min)s)
AND (%(priority_max)s::integer IS NULL OR priority <= %(priority_max)s)
AND (%(attempts_min)s::integer IS NULL OR attempt >= %(attempts_min)s)
AND (%(attempts_max)s::integer IS NULL OR attempt <= %(attempts_max)s)
AND (%(payload_id)s::text IS NULL OR payload ->> 'payload_id' = %(payload_id)s)
AND (%(paths)s::text[] IS NULL OR NOT EXISTS (
SELECT FROM unnest(%(paths)s::text[], %(values)s::text[]) a(path, value)
WHERE payload #>> string_to_array(a.path, '.') IS DISTINCT FROM a.value))

-- name: sizes
-- Bytes of what lives and of what is over: as they are, and not as the planner saw them last.
SELECT pg_relation_size('task_live') AS live,
       (SELECT coalesce(sum(pg_relation_size(i.inhrelid)), 0)::bigint FROM pg_inherits i WHERE i.inhparent = 'task_history'::regclass) AS history;

-- name: count_active
-- What workers have: never more than they have slots.
SELECT live_task_status(state, claimed_at, started_at, last_heartbeat_at, (SELECT stale_before())) AS status, count(*) AS n
  FROM task_live
 WHERE state = 'a'
   {which}
   {live_when}
   {asked}
   AND (%(errors)s::text[] IS NULL OR {says})
 GROUP BY 1;

-- name: count_waiting
SELECT 'pending' AS status, count(*) AS n FROM (
  SELECT FROM live_tasks
   WHERE state <> 'a'
     AND (%(waits)s::text[] IS NULL OR wait_state = ANY (%(waits)s))
     {which}
     {live_when}
     {asked}
     AND (%(errors)s::text[] IS NULL OR {says})
   LIMIT %(most)s) x;

-- name: count_waits
-- Pending tasks by what they wait for.
SELECT wait_state, count(*) AS n
  FROM live_tasks
 WHERE state <> 'a' AND (%(statuses)s::text[] IS NULL OR 'pending' = ANY (%(statuses)s))
   AND (%(waits)s::text[] IS NULL OR wait_state = ANY (%(waits)s))
   {which}
   {live_when}
   {asked}
   AND (%(errors)s::text[] IS NULL OR {says})
 GROUP BY 1;

-- name: count_finished
-- Of one state. `<> 'completed'` lets what failed or was cancelled be read from the index of the unwell alone.
SELECT %(status)s::text AS status, count(*) AS n FROM (
  SELECT FROM task_history
   WHERE status = %(status)s AND (%(status)s = 'completed' OR status <> 'completed')
     {which}
     AND (%(created_after)s::timestamptz IS NULL OR (created_at >= %(created_after)s AND completed_at >= %(created_after)s))
     AND (%(created_before)s::timestamptz IS NULL OR created_at < %(created_before)s)
     AND (%(worker_ids)s::text[] IS NULL OR worker_id = ANY (%(worker_ids)s))
     AND (%(ended_after)s::timestamptz IS NULL OR completed_at >= %(ended_after)s)
     AND (%(ended_before)s::timestamptz IS NULL OR completed_at < %(ended_before)s)
     AND (%(took_over)s::float8 IS NULL OR completed_at - started_at > make_interval(secs => %(took_over)s))
     AND (%(took_under)s::float8 IS NULL OR completed_at - started_at < make_interval(secs => %(took_under)s))
     {asked}
     AND (%(cause)s::text IS NULL OR (status = 'failed' AND cause = %(cause)s))
     AND (%(errors)s::text[] IS NULL OR (status <> 'completed' AND {says}))
   LIMIT %(most)s) x;

-- name: limit_time
SELECT set_config('statement_timeout', %(ms)s::text, true);
