-- Readings for alerts that no other screen takes.

-- name: unreadable_menus
-- Stores whose newest payload of the last day has items that could not be read: quarantined for it, or applied without them.
SELECT count(*) AS stores, count(*) FILTER (WHERE drift) AS unreadable
  FROM (SELECT DISTINCT ON (p.dispensary_id) p.status = 'quarantined' AND p.reason LIKE 'schema changed%%'
               OR EXISTS (SELECT FROM store_crawls c WHERE c.payload_id = p.id AND c.warnings @> '[{"fatal": true}]') AS drift
          FROM raw_crawl_payloads p WHERE p.fetched_at > now() - interval '1 day' AND (p.status = 'quarantined' OR p.applied_at IS NOT NULL)
         ORDER BY p.dispensary_id, p.fetched_at DESC, p.id DESC) newest;
