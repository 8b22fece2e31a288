-- name: platforms_in_use
-- Platforms with stores to crawl or with discovery tasks.
SELECT p.name FROM unnest(%(platforms)s::text[]) p(name)
 WHERE EXISTS (SELECT FROM dispensaries d WHERE d.platform = p.name AND d.crawl_enabled)
    OR EXISTS (SELECT FROM task_live t WHERE t.role = 'store_discovery' AND t.state = 'r' AND t.platform = p.name);
