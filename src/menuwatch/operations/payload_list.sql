-- Lists of the archive.

-- name: payloads_with_stores
-- A page is cut before anything is looked up for it.
SELECT p.*, d.name AS store, before.id AS previous_id, before.content_sha256 = p.content_sha256 AS same_answers,
       before.product_count AS previous_count
  FROM (SELECT id, dispensary_id, platform, status, reason, product_count, page_count, is_first, fetched_at, bytes, content_sha256, applied_at,
               released_at
          FROM raw_crawl_payloads
         WHERE (%(store)s::integer IS NULL OR dispensary_id = %(store)s)
           AND (%(status)s::text IS NULL OR status = %(status)s)
           AND (%(before_at)s::timestamptz IS NULL OR (fetched_at, id) < (%(before_at)s, %(before_id)s::bigint))
         ORDER BY fetched_at DESC, id DESC LIMIT %(limit)s) p
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

-- name: in_catalogue
-- Which products of the catalogue the menu's items are.
SELECT provider_product_id, id FROM catalog_products
 WHERE dispensary_id = %(store)s AND provider = %(platform)s AND provider_product_id = ANY(%(items)s);
