-- Whom there is work for.

-- name: platforms_in_use
-- Those with stores to crawl, or with stores to be found.
SELECT p.name FROM unnest(%(platforms)s::text[]) p(name)
 WHERE EXISTS (SELECT FROM dispensaries d WHERE d.platform = p.name AND d.crawl_enabled)
    OR EXISTS (SELECT FROM task_live t WHERE t.role = 'store_discovery' AND t.state = 'r' AND t.platform = p.name);
