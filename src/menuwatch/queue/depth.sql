-- How many tasks waited, over time.

-- name: waits
-- In steps from `since` on (-1 is the time before), how many tasks at most were due and not claimed yet at once, among those whose number
-- changed then, and by how much their number changed. Of a retried task its last wait is known. The row without a step says how many
-- ended tasks were read: at most `read` of each role.
WITH ended AS MATERIALIZED (
  SELECT h.* FROM unnest(task_roles(NULL)) r(role) CROSS JOIN LATERAL (
    SELECT greatest(t.created_at, t.scheduled_for) AS due, coalesce(t.claimed_at, t.completed_at) AS claimed
      FROM task_history t WHERE t.role = r.role AND t.completed_at >= %(since)s::timestamptz LIMIT %(read)s::bigint) h),
waits AS (
  SELECT due, claimed FROM ended WHERE due < claimed  -- a task may be cancelled before it is due
  UNION ALL
  SELECT greatest(t.created_at, t.scheduled_for), t.claimed_at FROM task_live t
   WHERE t.claimed_at IS NULL OR t.claimed_at > greatest(t.created_at, t.scheduled_for)),
changes AS (
  SELECT due AS at, 1 AS change FROM waits WHERE due <= %(until)s::timestamptz
  UNION ALL
  SELECT claimed, -1 FROM waits WHERE claimed <= %(until)s::timestamptz),
counted AS (
  SELECT least(greatest(floor(extract(epoch FROM at - %(since)s) / extract(epoch FROM %(step)s::interval)), -1), %(steps)s - 1)::int AS step,
         change, sum(change) OVER (ORDER BY at, change ROWS UNBOUNDED PRECEDING) AS waiting
    FROM changes)
SELECT step, max(waiting)::bigint AS most, sum(change)::bigint AS change FROM counted GROUP BY step
UNION ALL
SELECT NULL, count(*), 0 FROM ended;
