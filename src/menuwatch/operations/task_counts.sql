-- Tasks counted, in an installation of millions.

-- name: all_tasks
-- Days that are over were counted (task_days); the others, and what is live, are counted now. Which days these are is found out first,
-- whatever the planner expects of names in pg_class: else it may count every day, and see afterwards which were counted before.
WITH days AS MATERIALIZED (SELECT d.day, EXISTS (SELECT FROM task_days t WHERE t.day = d.day) AS counted FROM task_history_days d),
open AS MATERIALIZED (SELECT d.day FROM days d WHERE NOT d.counted)
SELECT x.role, x.status, sum(x.n)::bigint AS n FROM (
  SELECT t.role, t.platform,
         CASE WHEN t.state <> 'a' THEN 'pending'
              WHEN coalesce(t.last_heartbeat_at, t.claimed_at) < now() - interval '10 minutes' THEN 'stale'
              WHEN t.started_at IS NULL THEN 'claimed' ELSE 'running' END AS status, count(*) AS n
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
