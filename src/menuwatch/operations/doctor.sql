-- What the doctor asks the database.

-- name: server
SELECT current_setting('server_version') AS version, (SELECT version_num FROM alembic_version) AS revision;

-- name: workers
SELECT count(*) FILTER (WHERE last_heartbeat_at >= now() - make_interval(secs => %(silent)s)) AS live,
       count(*) FILTER (WHERE last_heartbeat_at < now() - make_interval(secs => %(silent)s)) AS silent,
       (SELECT count(*) FROM task_live WHERE state = 'r' OR (state = 's' AND scheduled_for <= now())) AS waiting
  FROM worker_registry WHERE status <> 'stopped';

-- name: tasks
-- What waits and what is worked on; what has ended is history, of which there may be millions.
SELECT l.status, count(*) AS n
  FROM (SELECT CASE WHEN state <> 'a' THEN 'pending'
                    WHEN coalesce(last_heartbeat_at, claimed_at) < now() - interval '10 minutes' THEN 'stale'
                    WHEN started_at IS NULL THEN 'claimed' ELSE 'running' END AS status FROM task_live) l
 GROUP BY l.status ORDER BY l.status;
