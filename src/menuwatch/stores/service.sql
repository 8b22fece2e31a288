-- Stores for operators. Every list is a keyset page: the last row's sort values and id are the next page's start.

-- piece: store_filter
(%(states)s::text[] IS NULL OR s.state = ANY (%(states)s))
AND (%(platform)s::text IS NULL OR s.platform = %(platform)s)
AND (%(crawl_enabled)s::boolean IS NULL OR s.crawl_enabled = %(crawl_enabled)s)
AND (%(freshness)s::text[] IS NULL OR h.status = ANY (%(freshness)s))
AND (%(q)s::text IS NULL OR s.name ILIKE %(q)s OR s.city ILIKE %(q)s OR s.slug ILIKE %(q)s)
AND (%(meters)s::double precision IS NULL
     OR distance_meters(%(latitude)s::double precision, %(longitude)s::double precision, s.latitude, s.longitude) <= %(meters)s)
AND (%(updated_since)s::timestamptz IS NULL OR s.updated_at >= %(updated_since)s)
AND (NOT %(stateless)s::boolean OR s.state IS NULL)

-- name: list_stores
SELECT s.id, s.platform, s.platform_dispensary_id, s.slug, s.name, s.menu_url, s.address, s.city, s.state, s.country, s.zipcode,
       s.latitude, s.longitude, s.timezone, s.phone, s.is_recreational, s.is_medical, s.crawl_enabled, s.crawl_interval_hours,
       s.shown, ARRAY(SELECT jsonb_object_keys(s.details_by_person) ORDER BY 1) AS details_by_person, s.first_crawled_at, s.last_crawled_at, s.last_payload_id, s.last_attempt_at, s.last_error, s.product_count, s.created_at,
       s.updated_at, (SELECT l.location_id FROM location_links l WHERE l.dispensary_id = s.id) AS location_id
  FROM dispensaries s CROSS JOIN LATERAL store_freshness(s) h
 WHERE {store_filter}
   AND (%(after)s::integer IS NULL OR s.id > %(after)s)
 ORDER BY s.id LIMIT %(limit)s;

-- name: observed_stores
SELECT count(*) AS known_stores, count(s.last_crawled_at) AS stores, count(y.id) AS partial, min(s.last_crawled_at) AS oldest_at,
       max(s.last_crawled_at) AS newest_at
  FROM dispensaries s CROSS JOIN LATERAL store_freshness(s) h
  LEFT JOIN raw_crawl_payloads y ON y.id = s.last_payload_id AND y.is_partial
 WHERE {store_filter} AND (%(ids)s::integer[] IS NULL OR s.id = ANY (%(ids)s));

-- name: last_crawl
SELECT crawled_at, payload_id, products, new_products, changed, unchanged, returned, missing, out_of_stock, price_changes,
       stock_changes, warnings
  FROM store_crawls WHERE dispensary_id = %(id)s ORDER BY crawled_at DESC LIMIT 1;

-- name: quality_score
SELECT score, reason FROM quality_stores WHERE dispensary_id = %(id)s;

-- name: lock_crawl_settings
SELECT crawl_enabled AS enabled, crawl_interval_hours AS interval_hours FROM dispensaries WHERE id = %(id)s FOR NO KEY UPDATE;

-- name: set_crawl_settings
UPDATE dispensaries SET crawl_enabled = %(enabled)s, crawl_interval_hours = %(interval_hours)s::numeric, updated_at = now() WHERE id = %(id)s;

-- name: recent_crawls
-- Newest first. A crawl is listed by its payload, or by its task if it has none; so are failed attempts to resolve the store.
(SELECT p.fetched_at AS at, p.status AS outcome, p.id AS number, p.task_id, p.product_count AS products, p.bytes::bigint AS bytes, p.reason
   FROM raw_crawl_payloads p
  WHERE p.dispensary_id = %(id)s AND p.fetched_at > now() - interval '30 days'
  ORDER BY p.fetched_at DESC, p.id DESC LIMIT %(limit)s)
 UNION ALL
(SELECT h.completed_at, 'failed', h.id, h.id, NULL, NULL, h.error_message
   FROM task_history h
  WHERE h.dispensary_id = %(id)s AND h.role IN ('entry_point_discovery', 'payload_fetch', 'product_discovery') AND h.status = 'failed'
    AND h.completed_at > now() - interval '30 days'
    AND NOT EXISTS (SELECT FROM raw_crawl_payloads p WHERE p.dispensary_id = h.dispensary_id AND p.task_id = h.id AND p.fetched_at >= h.claimed_at)
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

-- name: store_health
-- Those that are due longest first; of equally due ones by number. What is never crawled comes first of all, what may not be crawled last:
-- 'infinity'. With `sort` by another column: there are some thousand stores, so pages are counted off. 
-- `next_at` is when the waiting crawl was or is due, or else when the interval is over, or, if it is over, when the next schedule enqueues it.
SELECT d.id, d.name, d.slug, d.platform, d.city, d.state, d.crawl_enabled,
       d.crawl_interval_hours, d.last_crawled_at, d.last_attempt_at, d.last_error, d.product_count, d.key AS due_at, d.status AS freshness,
       w.id AS waiting_task_id, coalesce(w.due_at, CASE WHEN d.last_crawled_at + d.crawl_interval_hours * interval '1 hour' > now() THEN d.last_crawled_at + d.crawl_interval_hours * interval '1 hour' END,
                                         f.next_run_at, d.last_crawled_at + d.crawl_interval_hours * interval '1 hour') AS next_at,
       a.id AS active_task_id, coalesce(r.outcomes, '{}') AS outcomes
  FROM (SELECT s.*, h.key, h.status,
               row_number() OVER (ORDER BY
                 CASE %(sort)s::text WHEN 'name' THEN lower(s.name) END, CASE %(sort)s::text WHEN '-name' THEN lower(s.name) END DESC,
                 CASE %(sort)s::text WHEN 'crawled' THEN s.last_crawled_at END, CASE %(sort)s::text WHEN '-crawled' THEN s.last_crawled_at END DESC NULLS LAST,
                 CASE %(sort)s::text WHEN 'products' THEN s.product_count END, CASE %(sort)s::text WHEN '-products' THEN s.product_count END DESC NULLS LAST,
                 CASE %(sort)s::text WHEN '-due' THEN h.key END DESC, h.key, s.id) AS place
          FROM dispensaries s CROSS JOIN LATERAL store_freshness(s) h
         WHERE {store_filter}
           AND (%(id)s::integer IS NULL OR s.id = %(id)s)
           AND (%(after_id)s::integer IS NULL OR (h.key, s.id) > (%(after_key)s::timestamptz, %(after_id)s))
         ORDER BY place LIMIT %(limit)s OFFSET %(offset)s) d
  LEFT JOIN LATERAL (
    -- In two parts, each as one of the queue's indexes has it.
    SELECT x.id, x.due_at
      FROM (SELECT t.id, coalesce(t.scheduled_for, t.created_at) AS due_at FROM task_live t
             WHERE t.state IN ('p', 's') AND t.dispensary_id = d.id AND t.role IN ('entry_point_discovery', 'payload_fetch', 'product_discovery')
            UNION ALL
            SELECT t.id, coalesce(t.scheduled_for, t.created_at) FROM task_live t
             WHERE t.state IN ('r', 'a') AND t.state::text = 'r' AND t.dispensary_id = d.id AND t.role IN ('entry_point_discovery', 'payload_fetch', 'product_discovery')) x
     ORDER BY 2, 1 LIMIT 1) w ON true
  LEFT JOIN LATERAL (
    SELECT min(c.next_run_at) AS next_run_at FROM task_schedules c
     WHERE c.enabled AND isfinite(c.next_run_at) AND c.role IN ('payload_fetch', 'product_discovery') AND d.status NOT IN ('off', 'unresolved')
       AND c.platform = d.platform AND (c.state_code IS NULL OR c.state_code = d.state)) f ON true
  LEFT JOIN LATERAL (SELECT t.id FROM task_live t WHERE t.dispensary_id = d.id AND t.state = 'a' LIMIT 1) a ON true
  LEFT JOIN LATERAL (
    SELECT array_agg(x.status = 'completed' ORDER BY x.completed_at DESC) AS outcomes
      FROM (SELECT h.status, h.completed_at FROM task_history h
             WHERE h.dispensary_id = d.id AND h.status <> 'cancelled'
               AND (h.role IN ('payload_fetch', 'product_discovery') OR d.status = 'unresolved' AND h.role = 'entry_point_discovery')
               AND h.completed_at > now() - interval '7 days'
             ORDER BY h.completed_at DESC LIMIT %(outcomes)s) x) r ON true
 ORDER BY d.place;

-- name: store_freshness_counts
SELECT s.state, h.status, count(*) AS n FROM dispensaries s CROSS JOIN LATERAL store_freshness(s) h
 WHERE %(platform)s::text IS NULL OR s.platform = %(platform)s
 GROUP BY s.state, h.status ORDER BY s.state NULLS LAST, h.status;

-- name: count_positions
SELECT count(*) AS stores, count(latitude) AS placed FROM dispensaries WHERE last_crawled_at IS NOT NULL;
