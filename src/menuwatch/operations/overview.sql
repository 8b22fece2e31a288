-- Is it healthy: everything that the first screen says, in reads whose cost is bounded by what is live and by the hours that are shown.

-- name: load
-- What waits and runs, by role; `oldest_at` is since when the longest waiting due task could have been taken.
SELECT r.role, coalesce(l.ready, 0) AS ready, coalesce(l.scheduled, 0) AS scheduled, coalesce(l.retrying, 0) AS retrying,
       coalesce(l.claimed, 0) AS claimed, coalesce(l.running, 0) AS running, coalesce(l.stale, 0) AS stale, l.oldest_at
  FROM unnest(task_roles(NULL)) WITH ORDINALITY r(role, place)
  LEFT JOIN (
    SELECT t.role,
           count(*) FILTER (WHERE t.state IN ('r', 'p') OR (t.state = 's' AND t.scheduled_for <= now())) AS ready,
           count(*) FILTER (WHERE t.state = 's' AND t.scheduled_for > now()) AS scheduled,
           count(*) FILTER (WHERE t.state <> 'a' AND t.attempt > 0) AS retrying,
           count(*) FILTER (WHERE t.state = 'a' AND t.started_at IS NULL) AS claimed,
           count(*) FILTER (WHERE t.state = 'a' AND t.started_at IS NOT NULL) AS running,
           count(*) FILTER (WHERE t.state = 'a' AND coalesce(t.last_heartbeat_at, t.claimed_at) < now() - interval '10 minutes') AS stale,
           min(coalesce(t.scheduled_for, t.created_at))
             FILTER (WHERE t.state IN ('r', 'p') OR (t.state = 's' AND t.scheduled_for <= now())) AS oldest_at
      FROM task_live t GROUP BY t.role) l ON l.role = r.role
 ORDER BY r.place;

-- name: ends
-- Tasks that ended, by five minutes. A task is in the history from when it ended, so those that arrived in this time are there or live.
SELECT date_bin('5 minutes', h.completed_at, '2000-01-01Z') AS start, count(*) FILTER (WHERE h.status = 'completed') AS completed,
       count(*) FILTER (WHERE h.status = 'failed') AS failed
  FROM task_history h WHERE h.completed_at >= %(since)s::timestamptz GROUP BY 1;

-- name: arrivals
SELECT start, sum(n)::bigint AS arrived FROM (
  SELECT date_bin('5 minutes', h.created_at, '2000-01-01Z') AS start, count(*) AS n
    FROM task_history h WHERE h.completed_at >= %(since)s::timestamptz AND h.created_at >= %(since)s GROUP BY 1
  UNION ALL
  SELECT date_bin('5 minutes', t.created_at, '2000-01-01Z'), count(*)
    FROM task_live t WHERE t.created_at >= %(since)s GROUP BY 1) a
 GROUP BY start;

-- name: around
-- What the work needs. A worker is alive while it gave a sign in the last two minutes; a store is stale when it was not seen for twice its
-- interval, a schedule late when it should have fired two minutes ago.
SELECT now() AS at,
       (SELECT to_jsonb(w) FROM (
          SELECT count(*) FILTER (WHERE alive) AS live,
                 count(*) FILTER (WHERE alive AND status = 'active') AS claiming,
                 count(*) FILTER (WHERE alive AND status = 'backing_off') AS backing_off,
                 count(*) FILTER (WHERE alive AND status = 'paused') AS paused,
                 count(*) FILTER (WHERE NOT alive) AS silent,
                 coalesce(sum(worker_slots(heartbeat)) FILTER (WHERE alive), 0) AS slots,
                 count(DISTINCT pod) FILTER (WHERE alive) AS pods
            FROM (SELECT g.*, g.last_heartbeat_at > now() - interval '2 minutes' AS alive FROM worker_registry g WHERE g.status <> 'stopped') g) w)
         AS workers,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('id', s.id, 'name', s.name, 'due_at', s.next_run_at,
                                                     'error', s.last_error) ORDER BY s.next_run_at), '[]')
          FROM task_schedules s WHERE s.enabled AND s.next_run_at < now() - interval '2 minutes') AS late_schedules,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('host', h.host, 'code', c.code, 'reason', c.reason,
                 'until', CASE c.code WHEN 'circuit' THEN h.circuit_until WHEN 'cooling' THEN h.cooldown_until END) ORDER BY h.host), '[]')
          FROM hosts h CROSS JOIN LATERAL host_closed(h, clock_timestamp()) c WHERE c.code IS NOT NULL) AS closed_hosts,
       (SELECT to_jsonb(p) FROM (
          SELECT count(*) AS known, count(*) FILTER (WHERE is_active) AS active,
                 count(*) FILTER (WHERE NOT is_active AND disabled_at IS NULL) AS down,
                 count(*) FILTER (WHERE disabled_at IS NOT NULL) AS disabled FROM proxies) p) AS proxies,
       (SELECT to_jsonb(d) FROM (
          SELECT count(*) AS known, count(*) FILTER (WHERE crawl_enabled AND platform_dispensary_id IS NOT NULL) AS crawled,
                 count(*) FILTER (WHERE crawl_enabled AND platform_dispensary_id IS NOT NULL AND last_crawled_at IS NULL) AS never,
                 count(*) FILTER (WHERE crawl_enabled AND platform_dispensary_id IS NOT NULL
                                    AND last_crawled_at < now() - 2 * crawl_interval_hours * interval '1 hour') AS stale
            FROM dispensaries) d) AS stores,
       (SELECT count(*) FROM raw_crawl_payloads WHERE status = 'quarantined') AS quarantined;
