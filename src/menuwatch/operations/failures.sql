-- Failed tasks by what they failed of (error_cause).

-- name: failure_groups
-- Read from the index alone, but for one example of each group: the last one.
SELECT g.cause, g.role, g.n, g.stores, g.last_hour, g.last_day, g.first_at, g.last_at, e.id AS example_id, e.error_message AS example,
       error_kind(e.error_message) AS kind
  FROM (
    SELECT h.cause, h.role, count(*) AS n, count(DISTINCT h.dispensary_id) AS stores,
           count(*) FILTER (WHERE h.completed_at >= now() - interval '1 hour') AS last_hour,
           count(*) FILTER (WHERE h.completed_at >= now() - interval '24 hours') AS last_day,
           min(h.completed_at) AS first_at, max(h.completed_at) AS last_at
      FROM task_history h
     WHERE h.status = 'failed' AND h.completed_at >= %(since)s
       AND (%(roles)s::text[] IS NULL OR h.role = ANY (%(roles)s))
       AND (%(cause)s::text IS NULL OR h.cause = %(cause)s)
     GROUP BY h.cause, h.role
     ORDER BY count(*) DESC, h.cause, h.role LIMIT %(limit)s) g
 CROSS JOIN LATERAL (
    SELECT x.id, x.error_message FROM task_history x
     WHERE x.cause = g.cause AND x.status = 'failed' AND x.completed_at = g.last_at AND x.role = g.role
     ORDER BY x.id DESC LIMIT 1) e
 ORDER BY g.n DESC, g.cause, g.role;

-- name: failures_by_time
-- Of these causes, how many failed in each stretch of time.
SELECT h.cause, h.role, date_bin(%(step)s::interval, h.completed_at, %(since)s::timestamptz) AS start, count(*) AS n
  FROM task_history h
 WHERE h.status = 'failed' AND h.completed_at >= %(since)s AND h.cause = ANY (%(causes)s::text[])
 GROUP BY 1, 2, 3;
