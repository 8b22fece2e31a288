-- Archived payloads: lists, and what has to do with one.

-- piece: page
WHERE (%(dispensary_id)s::integer IS NULL OR dispensary_id = %(dispensary_id)s)
   AND (%(status)s::text IS NULL OR status = %(status)s)
   AND (%(before_at)s::timestamptz IS NULL OR (fetched_at, id) < (%(before_at)s, %(before_id)s::bigint))
 ORDER BY fetched_at DESC, id DESC LIMIT %(limit)s

-- name: list_payloads
SELECT * FROM raw_crawl_payloads {page};

-- name: list_with_previous
-- A page is cut before anything is looked up for it.
SELECT p.*, d.name AS store, before.id AS previous_id, before.content_sha256 = p.content_sha256 AS same_answers,
       before.product_count AS previous_count
  FROM (SELECT id, dispensary_id, platform, status, reason, product_count, page_count, is_first, fetched_at, bytes, content_sha256, applied_at,
               released_at
          FROM raw_crawl_payloads
         {page}) p
  JOIN dispensaries d ON d.id = p.dispensary_id
  LEFT JOIN LATERAL (
    SELECT b.id, b.content_sha256, b.product_count FROM raw_crawl_payloads b
     WHERE b.dispensary_id = p.dispensary_id AND (b.fetched_at, b.id) < (p.fetched_at, p.id)
     ORDER BY b.fetched_at DESC, b.id DESC LIMIT 1) before ON true
 ORDER BY p.fetched_at DESC, p.id DESC;

-- name: in_quarantine
SELECT count(*) AS n FROM (SELECT FROM raw_crawl_payloads WHERE status = 'quarantined' LIMIT %(limit)s) few;

-- name: comparable
-- Those nearest to it: before it the newest first, after it the oldest first. A rejected one holds no menu.
(SELECT o.id, o.fetched_at, o.status, o.product_count, true AS before FROM raw_crawl_payloads y
   JOIN raw_crawl_payloads o ON o.dispensary_id = y.dispensary_id AND (o.fetched_at, o.id) < (y.fetched_at, y.id)
  WHERE y.id = %(id)s AND o.status <> 'rejected' ORDER BY o.fetched_at DESC, o.id DESC LIMIT %(limit)s)
UNION ALL
(SELECT o.id, o.fetched_at, o.status, o.product_count, false FROM raw_crawl_payloads y
   JOIN raw_crawl_payloads o ON o.dispensary_id = y.dispensary_id AND (o.fetched_at, o.id) > (y.fetched_at, y.id)
  WHERE y.id = %(id)s AND o.status <> 'rejected' ORDER BY o.fetched_at, o.id LIMIT %(limit)s);

-- name: in_catalog
-- Which products of the catalog the menu's items are.
SELECT provider_product_id, id FROM catalog_products
 WHERE dispensary_id = %(store)s AND provider = %(platform)s AND provider_product_id = ANY(%(items)s);

-- name: crawl_of
-- What the catalog took from a payload.
SELECT c.crawled_at, c.products, c.new_products, c.changed, c.unchanged, c.returned, c.missing, c.out_of_stock, c.price_changes, c.stock_changes,
       jsonb_array_length(c.warnings) AS warnings
  FROM store_crawls c WHERE c.payload_id = %(id)s;

-- name: alike
-- The store's other payloads with the same answers, and which of them have the same file; the newest first.
SELECT o.id, o.path = y.path AS same_file FROM raw_crawl_payloads y
  JOIN raw_crawl_payloads o ON o.dispensary_id = y.dispensary_id AND o.content_sha256 = y.content_sha256 AND o.id <> y.id
 WHERE y.id = %(id)s ORDER BY o.fetched_at DESC, o.id DESC;

-- name: latest_ok_payloads
-- The payloads that a diff compares when none is named: the newest ok one up to `to`'s time, and the ok one before it.
SELECT id FROM raw_crawl_payloads
 WHERE dispensary_id = %(dispensary_id)s AND status = 'ok'
   AND (%(before_at)s::timestamptz IS NULL OR (fetched_at, id) < (%(before_at)s, %(before_id)s::bigint))
 ORDER BY fetched_at DESC, id DESC LIMIT %(limit)s;

-- name: payload_counts
SELECT status, count(*) AS n FROM raw_crawl_payloads GROUP BY status;
