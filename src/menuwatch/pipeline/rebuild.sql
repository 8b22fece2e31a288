-- A store's products and history made anew from its archive, in one transaction that holds the store's row.

-- name: create_products_before
CREATE TEMPORARY TABLE IF NOT EXISTS products_before (LIKE catalog_products) ON COMMIT DELETE ROWS;

-- name: create_states_before
CREATE TEMPORARY TABLE IF NOT EXISTS states_before (LIKE product_states) ON COMMIT DELETE ROWS;

-- name: create_crawls_before
CREATE TEMPORARY TABLE IF NOT EXISTS crawls_before (LIKE store_crawls) ON COMMIT DELETE ROWS;

-- name: create_renamed
-- The number that a product got in the rebuilding, and the one that it had.
CREATE TEMPORARY TABLE IF NOT EXISTS products_renamed (made bigint PRIMARY KEY, id bigint NOT NULL UNIQUE) ON COMMIT DELETE ROWS;

-- name: without_payload
-- Crawls that the archive has no payload of.
SELECT count(*) AS crawls, min(crawled_at) AS first, max(crawled_at) AS last FROM store_crawls
 WHERE dispensary_id = %(id)s AND payload_id IS NULL;

-- name: payloads_to_apply
-- Those that are good, up to the crawl that the catalogue shows; what waits to be applied is left to its own task.
SELECT * FROM raw_crawl_payloads
 WHERE dispensary_id = %(id)s AND status = 'ok' AND fetched_at <= %(last)s ORDER BY fetched_at, id;

-- name: keep_products
INSERT INTO products_before SELECT * FROM catalog_products WHERE dispensary_id = %(id)s;

-- name: keep_states
INSERT INTO states_before SELECT s.* FROM product_states s JOIN products_before p ON p.id = s.product_id;

-- name: keep_crawls
INSERT INTO crawls_before SELECT * FROM store_crawls WHERE dispensary_id = %(id)s;

-- name: clear_states
DELETE FROM past_states s USING products_before p WHERE s.product_id = p.id;

-- name: clear_crawls
DELETE FROM store_crawls WHERE dispensary_id = %(id)s;

-- name: set_aside
-- Products keep their rows until the end, so that what refers to them stays: as those of a store that does not exist.
UPDATE catalog_products SET dispensary_id = -dispensary_id WHERE dispensary_id = %(id)s;

-- name: forget_crawls
UPDATE dispensaries SET first_crawled_at = NULL, last_crawled_at = NULL, last_payload_id = NULL WHERE id = %(id)s;

-- name: forget_applied
UPDATE raw_crawl_payloads SET applied_at = NULL WHERE dispensary_id = %(id)s AND applied_at IS NOT NULL;

-- name: match
INSERT INTO products_renamed (made, id)
SELECT n.id, o.id FROM catalog_products n
  JOIN products_before o ON (o.provider, o.provider_product_id) = (n.provider, n.provider_product_id)
 WHERE n.dispensary_id = %(id)s;

-- name: unqueue_images
-- Pictures of products that are none any more.
DELETE FROM image_uses u
 WHERE u.product_id IN (SELECT b.id FROM products_before b WHERE NOT EXISTS (SELECT FROM products_renamed r WHERE r.id = b.id));

-- name: free_numbers
UPDATE catalog_products SET id = -id WHERE dispensary_id = -%(id)s::integer;

-- name: rename_products
UPDATE catalog_products n SET id = r.id, local_image_path = b.local_image_path
  FROM products_renamed r JOIN products_before b ON b.id = r.id WHERE n.id = r.made;

-- name: rename_states
UPDATE past_states s SET product_id = r.id FROM products_renamed r WHERE s.product_id = r.made;

-- name: remove_aside
DELETE FROM catalog_products WHERE dispensary_id = -%(id)s::integer;

-- name: restore_applied
UPDATE raw_crawl_payloads p SET applied_at = w.applied_at
  FROM unnest(%(ids)s::bigint[], %(times)s::timestamptz[]) w(id, applied_at) WHERE p.id = w.id AND p.applied_at IS NOT NULL;

-- name: compare_products
-- Where the picture lies is none of the rebuilding, and how a stored item is told from a new one may differ.
SELECT count(*) FILTER (WHERE b.id IS NULL) AS added, count(*) FILTER (WHERE a.id IS NULL) AS removed,
       count(*) FILTER (WHERE a.id IS NOT NULL AND b.id IS NOT NULL) AS changed
  FROM (SELECT * FROM catalog_products WHERE dispensary_id = %(id)s) a
  FULL JOIN products_before b ON b.id = a.id
 WHERE a.id IS NULL OR b.id IS NULL
    OR to_jsonb(a) - '{content_hash,local_image_path}'::text[] <> to_jsonb(b) - '{content_hash,local_image_path}'::text[];

-- name: compare_states
SELECT count(*) FILTER (WHERE b.product_id IS NULL) AS added, count(*) FILTER (WHERE a.product_id IS NULL) AS removed,
       count(*) FILTER (WHERE a.product_id IS NOT NULL AND b.product_id IS NOT NULL) AS changed
  FROM (SELECT s.* FROM product_states s JOIN catalog_products p ON p.id = s.product_id WHERE p.dispensary_id = %(id)s) a
  FULL JOIN states_before b ON (b.product_id, b.seen_from) = (a.product_id, a.seen_from)
 WHERE a.product_id IS NULL OR b.product_id IS NULL OR to_jsonb(a) <> to_jsonb(b);

-- name: compare_crawls
SELECT count(*) FILTER (WHERE b.crawled_at IS NULL) AS added, count(*) FILTER (WHERE a.crawled_at IS NULL) AS removed,
       count(*) FILTER (WHERE a.crawled_at IS NOT NULL AND b.crawled_at IS NOT NULL) AS changed
  FROM (SELECT * FROM store_crawls WHERE dispensary_id = %(id)s) a
  FULL JOIN crawls_before b ON b.crawled_at = a.crawled_at
 WHERE a.crawled_at IS NULL OR b.crawled_at IS NULL OR to_jsonb(a) <> to_jsonb(b);

-- name: differing_products
-- A few of the products that differ, or whose states do.
SELECT coalesce(a.name, b.name) AS name, coalesce(a.provider_product_id, b.provider_product_id) AS provider_product_id,
       CASE WHEN b.id IS NULL THEN 'added' WHEN a.id IS NULL THEN 'removed' ELSE 'changed' END AS what,
       ARRAY (SELECT k.key FROM jsonb_each(to_jsonb(a)) k WHERE k.key NOT IN ('content_hash', 'local_image_path')
                 AND k.value <> to_jsonb(b) -> k.key ORDER BY k.key) AS columns
  FROM (SELECT * FROM catalog_products WHERE dispensary_id = %(id)s) a
  FULL JOIN products_before b ON b.id = a.id
 WHERE a.id IS NULL OR b.id IS NULL
    OR to_jsonb(a) - '{content_hash,local_image_path}'::text[] <> to_jsonb(b) - '{content_hash,local_image_path}'::text[]
    OR (SELECT jsonb_agg(to_jsonb(s) ORDER BY s.seen_from) FROM product_states s WHERE s.product_id = a.id)
       IS DISTINCT FROM (SELECT jsonb_agg(to_jsonb(s) ORDER BY s.seen_from) FROM states_before s WHERE s.product_id = b.id)
 ORDER BY 1, 2 LIMIT %(limit)s;
