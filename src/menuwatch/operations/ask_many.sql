-- Asking for the work of many stores: which they would be.

-- name: stores_in_reach
-- Stores of a state, or of all; of those that can be crawled, which are due (their interval is over, or they were never crawled), and for
-- how many such work waits already.
SELECT d.id, d.crawl_enabled AND d.platform_dispensary_id IS NOT NULL AS usable,
       d.last_crawled_at IS NULL OR d.last_crawled_at + d.crawl_interval_hours * interval '1 hour' <= now() AS due,
       EXISTS (SELECT FROM task_live t WHERE t.dispensary_id = d.id AND t.role = %(role)s AND t.uniq = 1) AS waiting
  FROM dispensaries d
 WHERE %(state)s::text IS NULL OR d.state = %(state)s
 ORDER BY d.id;

-- name: states_of_stores
SELECT d.state, count(*) AS stores FROM dispensaries d WHERE d.state IS NOT NULL GROUP BY d.state ORDER BY d.state;
