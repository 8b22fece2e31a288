-- How stores are crawled.

-- name: store_health
-- Those that are due longest first; of equally due ones by number. What is never crawled comes first of all, what may not be crawled last:
-- 'infinity'. `next_at` is when the waiting crawl was or is due, or else when the interval is over.
SELECT d.id, d.name, d.slug, d.platform, d.city, d.state, d.crawl_enabled, d.platform_dispensary_id IS NOT NULL AS resolved,
       d.crawl_interval_hours, d.last_crawled_at, d.last_attempt_at, d.last_error, d.product_count, d.key AS due_at, d.status,
       w.id AS waiting_task_id, coalesce(w.due_at, d.last_crawled_at + d.crawl_interval_hours * interval '1 hour') AS next_at,
       a.id AS active_task_id, coalesce(r.outcomes, '{}') AS outcomes
  FROM (SELECT s.*, h.key, h.status FROM dispensaries s CROSS JOIN LATERAL store_freshness(s) h
         WHERE (%(states)s::text[] IS NULL OR s.state = ANY (%(states)s))
           AND (%(platform)s::text IS NULL OR s.platform = %(platform)s)
           AND (%(statuses)s::text[] IS NULL OR h.status = ANY (%(statuses)s))
           AND (%(ids)s::integer[] IS NULL OR s.id = ANY (%(ids)s))
           AND (%(q)s::text IS NULL OR s.name ILIKE %(q)s OR s.city ILIKE %(q)s OR s.slug ILIKE %(q)s)
           AND (%(after_id)s::integer IS NULL OR (h.key, s.id) > (%(after_key)s::timestamptz, %(after_id)s))
         ORDER BY h.key, s.id LIMIT %(limit)s) d
  LEFT JOIN LATERAL (
    -- In two parts, each as one of the queue's indexes has it.
    SELECT x.id, x.due_at
      FROM (SELECT t.id, coalesce(t.scheduled_for, t.created_at) AS due_at FROM task_live t
             WHERE t.state IN ('p', 's') AND t.dispensary_id = d.id AND t.role IN ('payload_fetch', 'product_discovery')
            UNION ALL
            SELECT t.id, coalesce(t.scheduled_for, t.created_at) FROM task_live t
             WHERE t.state IN ('r', 'a') AND t.state::text = 'r' AND t.dispensary_id = d.id AND t.role IN ('payload_fetch', 'product_discovery')) x
     ORDER BY 2, 1 LIMIT 1) w ON true
  LEFT JOIN LATERAL (SELECT t.id FROM task_live t WHERE t.dispensary_id = d.id AND t.state = 'a' LIMIT 1) a ON true
  LEFT JOIN LATERAL (
    SELECT array_agg(x.status ORDER BY x.completed_at DESC) AS outcomes
      FROM (SELECT h.status, h.completed_at FROM task_history h
             WHERE h.dispensary_id = d.id AND h.role IN ('payload_fetch', 'product_discovery') AND h.status <> 'cancelled'
               AND h.completed_at > now() - interval '7 days'
             ORDER BY h.completed_at DESC LIMIT %(outcomes)s) x) r ON true
 ORDER BY d.key, d.id;

-- name: store_freshness_counts
SELECT s.state, h.status, count(*) AS n FROM dispensaries s CROSS JOIN LATERAL store_freshness(s) h
 WHERE %(platform)s::text IS NULL OR s.platform = %(platform)s
 GROUP BY s.state, h.status ORDER BY s.state NULLS LAST, h.status;
