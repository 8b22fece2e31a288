-- How a store is crawled.

-- name: lock_crawling
SELECT crawl_enabled AS enabled, crawl_interval_hours AS interval_hours FROM dispensaries WHERE id = %(id)s FOR NO KEY UPDATE;

-- name: set_crawling
UPDATE dispensaries SET crawl_enabled = %(enabled)s, crawl_interval_hours = %(interval_hours)s::numeric, updated_at = now() WHERE id = %(id)s;

-- name: recent_crawls
-- Newest first. A crawl that brought a payload is told by it; one that brought none by its task.
(SELECT p.fetched_at AS at, p.status AS outcome, p.id AS number, p.product_count AS products, p.bytes::bigint AS bytes, p.reason
   FROM raw_crawl_payloads p
  WHERE p.dispensary_id = %(id)s AND p.fetched_at > now() - interval '30 days'
  ORDER BY p.fetched_at DESC, p.id DESC LIMIT %(limit)s)
 UNION ALL
(SELECT h.completed_at, 'failed', h.id, NULL, NULL, h.error_message
   FROM task_history h
  WHERE h.dispensary_id = %(id)s AND h.role IN ('payload_fetch', 'product_discovery') AND h.status = 'failed'
    AND h.completed_at > now() - interval '30 days'
  ORDER BY h.completed_at DESC LIMIT %(limit)s)
 ORDER BY 1 DESC LIMIT %(limit)s;

-- name: products_by_category
SELECT p.category_canon AS category, count(*) AS products, count(*) FILTER (WHERE p.is_in_stock) AS in_stock,
       count(*) FILTER (WHERE p.special) AS specials, min(p.price) AS cheapest
  FROM (SELECT c.category_canon, c.is_in_stock,
               on_special(c.price_rec, c.price_rec_special, c.price_med, c.price_med_special) AS special,
               effective_price(c.price_rec, c.price_rec_special, c.price_med, c.price_med_special) AS price
          FROM catalog_products c WHERE c.dispensary_id = %(id)s AND c.last_seen_at IS NULL LIMIT %(limit)s) p
 GROUP BY p.category_canon ORDER BY products DESC, p.category_canon NULLS LAST;

-- name: platforms_and_states
SELECT coalesce(array_agg(DISTINCT platform ORDER BY platform), '{}') AS platforms,
       coalesce(array_agg(DISTINCT state ORDER BY state) FILTER (WHERE state IS NOT NULL), '{}') AS states FROM dispensaries;
