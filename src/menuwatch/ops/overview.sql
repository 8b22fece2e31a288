-- Is it healthy: everything that the first screen says, in reads whose cost is bounded by what is live.

-- name: load
-- What waits and runs, by role; `oldest_at` is since when the longest waiting due task could have been taken:
-- a day that is planned in the afternoon has tasks due in the morning.
SELECT r.role, coalesce(l.ready, 0) AS ready, coalesce(l.blocked, 0) AS blocked, coalesce(l.scheduled, 0) AS scheduled, coalesce(l.retrying, 0) AS retrying,
       coalesce(l.claimed, 0) AS claimed, coalesce(l.running, 0) AS running, coalesce(l.stale, 0) AS stale, l.oldest_at
  FROM unnest(task_roles(NULL)) WITH ORDINALITY r(role, place)
  LEFT JOIN (
    SELECT t.role,
           count(*) FILTER (WHERE t.wait_state = 'ready') AS ready,
           count(*) FILTER (WHERE t.wait_state = 'blocked') AS blocked,
           count(*) FILTER (WHERE t.wait_state = 'scheduled') AS scheduled,
           count(*) FILTER (WHERE t.state <> 'a' AND t.attempt > 0) AS retrying,
           count(*) FILTER (WHERE t.state = 'a' AND t.started_at IS NULL) AS claimed,
           count(*) FILTER (WHERE t.state = 'a' AND t.started_at IS NOT NULL) AS running,
           count(*) FILTER (WHERE t.state = 'a' AND coalesce(t.last_heartbeat_at, t.claimed_at) < (SELECT stale_before())) AS stale,
           min(greatest(t.created_at, t.scheduled_for)) FILTER (WHERE t.wait_state = 'ready') AS oldest_at
      FROM live_tasks t GROUP BY t.role) l ON l.role = r.role
 ORDER BY r.place;

-- name: around
-- What the work needs. A store is stale when it was not seen for twice its
-- interval, a schedule late when it should have fired two minutes ago.
SELECT now() AS at,
       (SELECT to_jsonb(w) FROM (
          SELECT count(*) FILTER (WHERE alive) AS live,
                 count(*) FILTER (WHERE alive AND status = 'active') AS claiming,
                 count(*) FILTER (WHERE alive AND status = 'backing_off') AS backing_off,
                 count(*) FILTER (WHERE alive AND status = 'paused') AS paused,
                 count(*) FILTER (WHERE alive AND status = 'stopping') AS stopping,
                 count(*) FILTER (WHERE NOT alive) AS silent,
                 coalesce(sum(worker_slots(heartbeat)) FILTER (WHERE alive), 0) AS slots,
                 count(DISTINCT pod) FILTER (WHERE alive) AS pods
            FROM (SELECT g.*, worker_alive(g.status, g.last_heartbeat_at) AS alive FROM worker_registry g WHERE g.status <> 'stopped') g) w)
         AS workers,
       (SELECT to_jsonb(l) FROM (SELECT desired, error FROM supervisor_lease WHERE holder IS NOT NULL AND expires_at > clock_timestamp()) l)
         AS supervisor,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('id', s.id, 'name', s.name, 'due_at', s.next_run_at,
                                                     'error', s.last_error) ORDER BY s.next_run_at), '[]')
          FROM task_schedules s WHERE s.enabled AND s.next_run_at < now() - interval '2 minutes') AS late_schedules,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('host', h.host, 'code', c.code, 'reason', c.reason,
                 'until', c.until) ORDER BY h.host), '[]')
          FROM hosts h CROSS JOIN LATERAL host_block_reason(h, clock_timestamp()) c WHERE c.code IS NOT NULL) AS closed_hosts,
       (SELECT to_jsonb(p) FROM (
          SELECT count(*) AS known, count(*) FILTER (WHERE is_active) AS active,
                 count(*) FILTER (WHERE NOT is_active AND disabled_at IS NULL AND probe_state IS DISTINCT FROM 'untested') AS down,
                 count(*) FILTER (WHERE disabled_at IS NOT NULL) AS disabled FROM proxies) p) AS proxies,
       (SELECT to_jsonb(d) FROM (
          SELECT count(*) AS known, count(*) FILTER (WHERE crawl_enabled AND platform_dispensary_id IS NOT NULL) AS crawled,
                 count(*) FILTER (WHERE crawl_enabled AND platform_dispensary_id IS NOT NULL AND last_crawled_at IS NULL) AS never,
                 count(*) FILTER (WHERE crawl_enabled AND platform_dispensary_id IS NOT NULL
                                    AND last_crawled_at < now() - 2 * crawl_interval_hours * interval '1 hour') AS stale
            FROM dispensaries) d) AS stores,
       (SELECT count(*) FROM raw_crawl_payloads WHERE status = 'quarantined') AS quarantined;
