-- A mark per topic that changes when any process writes a row of that topic. Read twice a second while there are listeners, so each reads
-- only the end of an index, a few rows or the server's counters.

-- name: live_marks
-- `written` counts every row written to a table, but lags by up to ten seconds after a connection goes idle; topics that must show at once
-- have another mark beside it.
WITH written AS (
  SELECT relname, n_tup_ins + n_tup_upd + n_tup_del AS n FROM pg_stat_user_tables),
per AS (
  SELECT t.topic, sum(w.n) AS n
    FROM (VALUES ('tasks', 'task_live'), ('workers', 'worker_commands'), ('schedules', 'task_schedules'), ('payloads', 'raw_crawl_payloads'),
                 ('stores', 'dispensaries'), ('products', 'store_crawls'), ('proxies', 'proxies'), ('hosts', 'hosts'), ('hosts', 'host_events'),
                 ('images', 'image_references'), ('images', 'image_urls'), ('alerts', 'alert_events'), ('alerts', 'alert_deliveries'),
                 ('alerts', 'alert_rules'), ('visitors', 'visitor_days'), ('accounts', 'users'), ('accounts', 'api_tokens'),
                 ('accounts', 'audit_log'), ('crawls', 'crawl_queue'), ('crawls', 'crawl_products'), ('logs', 'log_lines')) t(topic, relname)
    LEFT JOIN written w USING (relname)
   GROUP BY t.topic)
SELECT p.topic,
       concat_ws(' ', p.n, CASE p.topic
         WHEN 'tasks' THEN concat_ws(' ',
           (SELECT last_value FROM task_ids),
           (SELECT concat_ws(' ', count(*), sum(hashtext(a.id || ' ' || a.attempt || ' ' || coalesce(a.started_at::text, '')))) FROM task_live a WHERE a.state = 'a'),
           (SELECT max(e.at) FROM unnest(task_roles(NULL)) r,
                   LATERAL (SELECT h.completed_at AS at FROM task_history h
                             WHERE h.role = r AND h.completed_at > now() - interval '1 hour' ORDER BY h.completed_at DESC LIMIT 1) e))
         WHEN 'workers' THEN concat_ws(' ',
           (SELECT concat_ws(' ', count(*), max(w.last_heartbeat_at), sum(hashtext(w.status))) FROM worker_registry w),
           (SELECT concat_ws(' ', s.desired, s.running, s.starting, s.draining, s.error, s.expires_at > now()) FROM supervisor_lease s),
           (SELECT concat_ws(' ', o.desired, o.error) FROM pod_scale_request o))
         WHEN 'schedules' THEN (SELECT concat_ws(' ', max(s.updated_at), max(s.last_run_at)) FROM task_schedules s)
         WHEN 'payloads' THEN (SELECT max(r.id) FROM raw_crawl_payloads r)::text
         WHEN 'products' THEN (SELECT position FROM crawl_feed WHERE position IS NOT NULL ORDER BY position DESC LIMIT 1)::text
         WHEN 'proxies' THEN (SELECT concat_ws(' ', count(*), count(*) FILTER (WHERE x.is_active), max(x.last_used_at)) FROM proxies x)
         WHEN 'hosts' THEN (SELECT max(e.id) FROM host_events e)::text
         WHEN 'logs' THEN (SELECT max(l.at) FROM log_lines l)::text
         WHEN 'alerts' THEN (SELECT concat_ws(' ', (SELECT max(id) FROM alert_events), (SELECT max(id) FROM alert_deliveries)))
         WHEN 'crawls' THEN (SELECT concat_ws(' ', max(c.id), count(*) FILTER (WHERE c.status = 'running'), max(c.next_submit_after), max(c.completed_at),
                                              max(c.cancelled_at), (SELECT max(id) FROM crawl_products)) FROM crawl_jobs c)
       END) AS mark
  FROM per p;
