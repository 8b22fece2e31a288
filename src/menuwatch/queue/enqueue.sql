-- name: stores_asked_for
-- What decides which work can be done for a store.
SELECT id, platform, crawl_enabled, platform_dispensary_id IS NOT NULL AS resolved FROM dispensaries WHERE id = ANY (%(ids)s::integer[]);

-- name: payloads_asked_for
SELECT id, dispensary_id FROM raw_crawl_payloads WHERE id = ANY (%(ids)s::bigint[]);

-- name: stores_to_enqueue
-- Stores of a state, or of all; of those that can be crawled, which are due (their interval is over, or they were never crawled), and for
-- which an equal task is pending.
SELECT d.id, d.platform, d.crawl_enabled AND d.platform_dispensary_id IS NOT NULL AS usable,
       d.last_crawled_at IS NULL OR d.last_crawled_at + d.crawl_interval_hours * interval '1 hour' <= now() AS due,
       EXISTS (SELECT FROM task_live t WHERE t.dispensary_id = d.id AND t.role = %(role)s AND t.uniq = 1) AS waiting
  FROM dispensaries d
 WHERE (%(state)s::text IS NULL OR d.state = %(state)s)
   AND (%(platform)s::text IS NULL OR d.platform = %(platform)s)
 ORDER BY d.id;

-- name: states_with_stores
SELECT d.state, count(*) AS stores
  FROM dispensaries d
 WHERE d.state IS NOT NULL AND (%(platform)s::text IS NULL OR d.platform = %(platform)s)
 GROUP BY d.state ORDER BY d.state;
