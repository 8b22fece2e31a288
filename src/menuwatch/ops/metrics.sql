-- Figures of the whole database, for scrapes: none of them costs more as history grows.

-- name: queue
-- One pass over the live tasks. What has come due and was not put in its place yet counts as ready: no worker claims.
SELECT role, CASE state WHEN 'b' THEN 'blocked' WHEN 'r' THEN 'ready' WHEN 's' THEN 'scheduled' WHEN 'p' THEN 'parked' ELSE 'active' END AS state, count(*) AS n,
       count(*) FILTER (WHERE attempt > 0 AND state <> 'a') AS retrying,
       count(*) FILTER (WHERE state = 'a' AND beaten < (SELECT stale_before())) AS stale,
       extract(epoch FROM now() - min(since) FILTER (WHERE state = 'r'))::double precision AS oldest_ready
  FROM (SELECT t.role, t.attempt, coalesce(t.last_heartbeat_at, t.claimed_at) AS beaten, greatest(t.created_at, t.scheduled_for) AS since,
               CASE WHEN t.wait_state = 'blocked' THEN 'b' WHEN t.state = 's' AND t.scheduled_for <= now() THEN 'r' ELSE t.state END AS state
          FROM live_tasks t) l
 GROUP BY role, state ORDER BY role, state;

-- name: ended
-- By minute, from the minute of `since` on, which is no longer than an hour ago; with the database's own time.
SELECT now() AS at, e.minute, e.role, e.status, e.n
  FROM (SELECT date_trunc('minute', greatest(%(since)s::timestamptz, now() - interval '1 hour')) AS since) s
  LEFT JOIN LATERAL (
    SELECT r.role, h.minute, h.status, h.n
      FROM unnest(task_roles(NULL)) r(role)
     CROSS JOIN LATERAL (
        SELECT date_trunc('minute', x.completed_at) AS minute, x.status, count(*) AS n
          FROM task_history x WHERE x.role = r.role AND x.completed_at >= s.since GROUP BY 1, 2) h) e ON true;

-- name: workers
SELECT status, count(*) AS n,
       count(*) FILTER (WHERE status <> 'stopped' AND NOT worker_alive(status, last_heartbeat_at)) AS silent,
       extract(epoch FROM now() - min(last_heartbeat_at) FILTER (WHERE status <> 'stopped'))::double precision AS oldest_heartbeat
  FROM worker_registry GROUP BY status ORDER BY status;

-- name: schedules
SELECT count(*) FILTER (WHERE late) AS late,
       coalesce(extract(epoch FROM now() - min(next_run_at) FILTER (WHERE late)), 0)::double precision AS late_seconds,
       count(*) FILTER (WHERE last_error IS NOT NULL) AS failing, extract(epoch FROM min(next_run_at))::double precision AS next_due
  FROM (SELECT s.*, s.next_run_at < now() - make_interval(secs => %(late)s::double precision) AS late FROM task_schedules s WHERE s.enabled) s;

-- name: recent_payloads
SELECT status, count(*) AS n FROM raw_crawl_payloads WHERE fetched_at > now() - interval '1 hour' GROUP BY status ORDER BY status;

-- name: quarantined_payloads
SELECT count(*) AS n FROM raw_crawl_payloads WHERE status = 'quarantined';

-- name: maintenance
SELECT job, extract(epoch FROM succeeded_at)::double precision AS succeeded_at, error IS NOT NULL AS failing FROM maintenance_runs ORDER BY job;

-- name: analytics
-- The figures for analysts: the newest that are done, and whether the last try was none of them.
SELECT extract(epoch FROM d.finished_at)::double precision AS refreshed, d.seconds, coalesce(l.status = 'failed', false) AS failing
  FROM (SELECT max(id) FILTER (WHERE status = 'done') AS done, max(id) FILTER (WHERE status <> 'running') AS last FROM analytics_runs) m
  LEFT JOIN analytics_runs d ON d.id = m.done LEFT JOIN analytics_runs l ON l.id = m.last;

-- name: fetched
-- Sums of all requests, by host and verdict: a few rows, however many requests.
SELECT host, verdict, requests, bytes, waited_ms / 1000 AS waited, elapsed_ms / 1000 AS took FROM fetch_totals ORDER BY host, verdict;

-- name: hosts
SELECT h.host, h.current_rate, c.code,
       (SELECT count(*) FROM identity_leases l WHERE l.host = h.host AND l.expires_at > clock_timestamp())::integer AS leases
  FROM hosts h, host_block_reason(h, clock_timestamp()) c ORDER BY h.host;

-- name: images
-- What is left to do, by partial indexes: pictures that are there cost nothing. Due is what no worker holds or lets rest.
SELECT (SELECT count(*) FROM image_references WHERE status = 'queued') AS queued,
       (SELECT count(*) FROM image_urls WHERE due_at IS NOT NULL) AS waiting,
       (SELECT count(*) FROM image_references WHERE status = 'failed') AS failed,
       (SELECT extract(epoch FROM now() - min(due_at))::double precision FROM image_urls WHERE due_at <= now()) AS oldest_due;

-- name: matching
SELECT n.stores, n.oldest, (SELECT count(*) FROM match_dirty_blocks) AS blocks,
       (SELECT count(*) FROM match_reviews WHERE skipped_at IS NULL) AS reviews
  FROM (SELECT count(*) AS stores, extract(epoch FROM now() - min(d.last_crawled_at))::double precision AS oldest
          FROM dispensaries d LEFT JOIN match_stores s ON s.dispensary_id = d.id
         WHERE d.last_crawled_at IS NOT NULL AND d.last_crawled_at IS DISTINCT FROM s.crawled_at) n;

-- name: alerts
-- Messages that are on their way, and events that wait for their time, by partial indexes.
SELECT (SELECT count(*) FROM alert_events WHERE NOT notified) AS events,
       count(*) AS pending, extract(epoch FROM now() - min(created_at))::double precision AS oldest
  FROM alert_deliveries WHERE status IN ('waiting', 'sending');

-- name: alert_deliveries
-- All that are kept: no more than were made in the days that history is.
SELECT status, count(*) AS n FROM alert_deliveries GROUP BY status ORDER BY status;

-- name: price_watches
SELECT channel, count(*) FILTER (WHERE confirmed_at IS NOT NULL) AS watches, count(due_at) AS pending
  FROM price_watches GROUP BY channel ORDER BY channel;

-- name: crawls
-- Of jobs that run alone, and of what was not read yet: nothing where there are none.
SELECT count(*) AS running, extract(epoch FROM now() - min(j.next_submission_at) FILTER (WHERE j.next_submission_at <= now()))::double precision AS late,
       (SELECT count(*) FROM crawl_jobs r JOIN crawl_queue q ON q.job_id = r.id AND q.status = 'submitted' WHERE r.status = 'running') AS under_way,
       (SELECT count(*) FROM crawl_deliveries) AS waiting,
       (SELECT extract(epoch FROM now() - min(visible_at))::double precision FROM crawl_deliveries WHERE visible_at <= now()) AS oldest
  FROM crawl_jobs j WHERE j.status = 'running';
