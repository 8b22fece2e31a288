-- What has changed, by topic: values that differ when something of that kind was written, by whomever. Read twice a second while somebody
-- looks, so each is a look at the end of an index, at a handful of rows, or at counters of the server.

-- name: live_marks
-- `written` counts every row written to a table, but is told late, by up to ten seconds where a connection falls silent; what should show at
-- once has a mark of its own beside it.
WITH written AS (
  SELECT relname, n_tup_ins + n_tup_upd + n_tup_del AS n FROM pg_stat_user_tables),
per AS (
  SELECT t.topic, sum(w.n) AS n
    FROM (VALUES ('tasks', 'task_live'), ('workers', 'worker_commands'), ('schedules', 'task_schedules'), ('payloads', 'raw_crawl_payloads'),
                 ('stores', 'dispensaries'), ('products', 'store_crawls'), ('proxies', 'proxies'), ('hosts', 'hosts'), ('hosts', 'host_events'),
                 ('images', 'image_uses'), ('images', 'image_sources'), ('alerts', 'alert_events'), ('alerts', 'alert_deliveries'),
                 ('alerts', 'alert_rules'), ('visitors', 'visitor_days'), ('accounts', 'users'), ('accounts', 'api_tokens'),
                 ('accounts', 'audit_log'), ('crawls', 'crawl_queue'), ('crawls', 'crawl_products')) t(topic, relname)
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
           (SELECT concat_ws(' ', s.wanted, s.running, s.starting, s.leaving, s.trouble, s.held_until > now()) FROM worker_supervision s),
           (SELECT concat_ws(' ', o.wanted, o.trouble) FROM pod_order o))
         WHEN 'schedules' THEN (SELECT concat_ws(' ', max(s.updated_at), max(s.last_run_at)) FROM task_schedules s)
         WHEN 'payloads' THEN (SELECT max(r.id) FROM raw_crawl_payloads r)::text
         WHEN 'products' THEN (SELECT position FROM crawl_feed WHERE position IS NOT NULL ORDER BY position DESC LIMIT 1)::text
         WHEN 'proxies' THEN (SELECT concat_ws(' ', count(*), count(*) FILTER (WHERE x.is_active), max(x.last_used_at)) FROM proxies x)
         WHEN 'hosts' THEN (SELECT max(e.id) FROM host_events e)::text
         WHEN 'alerts' THEN (SELECT concat_ws(' ', (SELECT max(id) FROM alert_events), (SELECT max(id) FROM alert_deliveries)))
         WHEN 'crawls' THEN (SELECT concat_ws(' ', max(c.id), count(*) FILTER (WHERE c.status = 'running'), max(c.not_before), max(c.completed_at),
                                              max(c.cancelled_at), (SELECT max(id) FROM crawl_products)) FROM crawl_jobs c)
       END) AS mark
  FROM per p;
