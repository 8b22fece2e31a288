-- How many tasks of each state a search finds, up to a number: what tabs say. Planned anew each time, as lists are (queries.sql).

-- piece: which
-- Which tasks, whatever became of them.
AND (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s))
AND (%(roles)s::text[] IS NULL OR role = ANY (%(roles)s))
AND (%(dispensary_id)s::integer IS NULL OR dispensary_id = %(dispensary_id)s)
AND (%(platform)s::text IS NULL OR platform = %(platform)s)

-- piece: says
-- Whether the reason holds these texts. What is plain ASCII, as nearly all of it is, is looked for in half the time (as in queries.sql).
CASE WHEN %(lowered)s::text[] IS NOT NULL THEN lower(error_message COLLATE "C") LIKE ALL (%(lowered)s) ELSE error_message ILIKE ALL (%(errors)s) END

-- piece: live_when
-- When it was enqueued, and by whom it is done, of what is not over: nothing of it has ended.
AND (%(created_after)s::timestamptz IS NULL OR created_at >= %(created_after)s)
AND (%(created_before)s::timestamptz IS NULL OR created_at < %(created_before)s)
AND (%(worker_id)s::text IS NULL OR worker_id = %(worker_id)s)
AND (%(ended_after)s::timestamptz IS NULL AND %(ended_before)s::timestamptz IS NULL AND %(cause)s::text IS NULL)

-- piece: asked
-- How urgent it is, and what it was given to do.
AND (%(priority_min)s::integer IS NULL OR priority >= %(priority_min)s)
AND (%(priority_max)s::integer IS NULL OR priority <= %(priority_max)s)
AND (%(payload_id)s::text IS NULL OR payload ->> 'payload_id' = %(payload_id)s)
AND (%(paths)s::text[] IS NULL OR NOT EXISTS (
SELECT FROM unnest(%(paths)s::text[], %(values)s::text[]) a(path, value)
WHERE payload #>> string_to_array(a.path, '.') IS DISTINCT FROM a.value))

-- name: sizes
-- Bytes of what lives and of what is over: as they are, and not as the planner saw them last.
SELECT pg_relation_size('task_live') AS live,
       (SELECT coalesce(sum(pg_relation_size(i.inhrelid)), 0)::bigint FROM pg_inherits i WHERE i.inhparent = 'task_history'::regclass) AS history;

-- name: count_at_work
-- What workers have: never more than they have slots.
SELECT CASE WHEN coalesce(last_heartbeat_at, claimed_at) < now() - interval '10 minutes' THEN 'stale'
            WHEN started_at IS NULL THEN 'claimed' ELSE 'running' END AS status, count(*) AS n
  FROM task_live
 WHERE state = 'a'
   {which}
   {live_when}
   {asked}
   AND (%(errors)s::text[] IS NULL OR {says})
 GROUP BY 1;

-- name: count_waiting
SELECT 'pending' AS status, count(*) AS n FROM (
  SELECT FROM task_live
   WHERE state <> 'a'
     {which}
     {live_when}
     {asked}
     AND (%(errors)s::text[] IS NULL OR {says})
   LIMIT %(most)s) x;

-- name: count_over
-- Of one state. `<> 'completed'` lets what failed or was cancelled be read from the index of the unwell alone.
SELECT %(status)s::text AS status, count(*) AS n FROM (
  SELECT FROM task_history
   WHERE status = %(status)s AND (%(status)s = 'completed' OR status <> 'completed')
     {which}
     AND (%(created_after)s::timestamptz IS NULL OR (created_at >= %(created_after)s AND completed_at >= %(created_after)s))
     AND (%(created_before)s::timestamptz IS NULL OR created_at < %(created_before)s)
     AND (%(worker_id)s::text IS NULL OR worker_id = %(worker_id)s)
     AND (%(ended_after)s::timestamptz IS NULL OR completed_at >= %(ended_after)s)
     AND (%(ended_before)s::timestamptz IS NULL OR completed_at < %(ended_before)s)
     {asked}
     AND (%(cause)s::text IS NULL OR (status = 'failed' AND cause = %(cause)s))
     AND (%(errors)s::text[] IS NULL OR (status <> 'completed' AND {says}))
   LIMIT %(most)s) x;

-- name: limit_time
SELECT set_config('statement_timeout', %(ms)s::text, true);

-- name: workers_named
SELECT worker_id, friendly_name FROM worker_registry WHERE worker_id = ANY (%(ids)s::text[]);

-- name: stores_named
SELECT id, name, slug, state FROM dispensaries WHERE id = ANY (%(ids)s::integer[]);
