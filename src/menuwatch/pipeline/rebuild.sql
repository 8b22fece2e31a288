-- A store's products and history rebuilt from its archive, in one transaction that holds the store's row; all of it, or from `since` on.

-- name: keep_from_packing
-- No month is packed while a store is rebuilt (catalog/history.sql, `begin_packing`).
SELECT pg_advisory_xact_lock_shared(hashtext('product_history are packed'));

-- name: create_products_before
CREATE TEMPORARY TABLE IF NOT EXISTS products_before (LIKE catalog_products) ON COMMIT DELETE ROWS;

-- name: create_states_before
CREATE TEMPORARY TABLE IF NOT EXISTS states_before (LIKE product_states) ON COMMIT DELETE ROWS;

-- name: create_details_before
CREATE TEMPORARY TABLE IF NOT EXISTS details_before (LIKE product_details) ON COMMIT DELETE ROWS;

-- name: create_crawls_before
CREATE TEMPORARY TABLE IF NOT EXISTS crawls_before (LIKE store_crawls) ON COMMIT DELETE ROWS;

-- name: create_renamed
-- The number that a product got in the rebuilding, and the one that it had.
CREATE TEMPORARY TABLE IF NOT EXISTS products_renamed (made bigint PRIMARY KEY, id bigint NOT NULL UNIQUE) ON COMMIT DELETE ROWS;

-- name: without_payload
-- Crawls that the archive has no payload of.
SELECT count(*) AS crawls, min(crawled_at) AS first, max(crawled_at) AS last FROM store_crawls
 WHERE dispensary_id = %(id)s AND payload_id IS NULL AND (%(since)s::timestamptz IS NULL OR crawled_at >= %(since)s);

-- name: crawl_before
-- The last crawl that stays as it is.
SELECT crawled_at, payload_id, products FROM store_crawls WHERE dispensary_id = %(id)s AND crawled_at < %(since)s::timestamptz
 ORDER BY crawled_at DESC LIMIT 1;

-- name: payloads_to_apply
-- Locked, so that retention (archive/retention.sql) removes none of them meanwhile. Those that are good, up to the crawl that the catalog shows; what waits to be applied is left to its own task.
SELECT * FROM raw_crawl_payloads
 WHERE dispensary_id = %(id)s AND status = 'ok' AND fetched_at <= %(last)s
   AND (%(since)s::timestamptz IS NULL OR fetched_at >= %(since)s)
 ORDER BY fetched_at, id
   FOR SHARE;

-- name: keep_products
INSERT INTO products_before SELECT * FROM catalog_products WHERE dispensary_id = %(id)s;

-- name: keep_states
INSERT INTO states_before SELECT s.* FROM product_states s JOIN products_before p ON p.id = s.product_id;

-- name: keep_details
INSERT INTO details_before SELECT d.* FROM product_details d JOIN products_before p ON p.id = d.product_id;

-- name: keep_crawls
INSERT INTO crawls_before SELECT * FROM store_crawls WHERE dispensary_id = %(id)s;

-- name: clear_states
DELETE FROM product_history s USING products_before p
 WHERE s.product_id = p.id AND (%(since)s::timestamptz IS NULL OR s.ended_at >= %(since)s);

-- name: clear_details
DELETE FROM product_detail_history s USING products_before p
 WHERE s.product_id = p.id AND (%(since)s::timestamptz IS NULL OR s.ended_at >= %(since)s);

-- name: clear_crawls
DELETE FROM store_crawls WHERE dispensary_id = %(id)s AND (%(since)s::timestamptz IS NULL OR crawled_at >= %(since)s);

-- name: set_aside
-- Products keep their rows until the end, so that what refers to them stays: as those of a store that does not exist.
UPDATE catalog_products SET dispensary_id = -dispensary_id
 WHERE dispensary_id = %(id)s AND (%(since)s::timestamptz IS NULL OR first_seen_at >= %(since)s);

-- name: forget_crawls
UPDATE dispensaries SET first_crawled_at = NULL, last_crawled_at = NULL, last_payload_id = NULL WHERE id = %(id)s;

-- name: forget_later_crawls
UPDATE dispensaries SET last_crawled_at = %(crawled_at)s, last_payload_id = %(payload_id)s, product_count = %(products)s WHERE id = %(id)s;

-- name: forget_applied
UPDATE raw_crawl_payloads SET applied_at = NULL WHERE dispensary_id = %(id)s AND applied_at IS NOT NULL
   AND (%(since)s::timestamptz IS NULL OR fetched_at >= %(since)s);

-- name: match
INSERT INTO products_renamed (made, id)
SELECT n.id, o.id FROM catalog_products n
  JOIN products_before o ON (o.provider, o.provider_product_id) = (n.provider, n.provider_product_id)
 WHERE n.dispensary_id = %(id)s;

-- name: unqueue_images
-- Images of products that no longer exist.
DELETE FROM image_references u
 WHERE u.product_id IN (SELECT b.id FROM products_before b WHERE NOT EXISTS (SELECT FROM products_renamed r WHERE r.id = b.id));

-- name: free_numbers
UPDATE catalog_products SET id = -id WHERE dispensary_id = -%(id)s::integer;

-- name: rename_products
UPDATE catalog_products n SET id = r.id, local_image_path = b.local_image_path
  FROM products_renamed r JOIN products_before b ON b.id = r.id WHERE n.id = r.made;

-- name: rename_states
UPDATE product_history s SET product_id = r.id FROM products_renamed r WHERE s.product_id = r.made AND r.made <> r.id;

-- name: rename_details
UPDATE product_detail_history s SET product_id = r.id FROM products_renamed r WHERE s.product_id = r.made AND r.made <> r.id;

-- name: match_again
UPDATE match_stores SET rules_version = 0 WHERE dispensary_id = %(id)s;

-- name: remove_aside
DELETE FROM catalog_products WHERE dispensary_id = -%(id)s::integer;

-- name: restore_applied
UPDATE raw_crawl_payloads p SET applied_at = w.applied_at
  FROM unnest(%(ids)s::bigint[], %(times)s::timestamptz[]) w(id, applied_at) WHERE p.id = w.id AND p.applied_at IS NOT NULL;

-- name: compare_products
-- Where the picture lies is none of the rebuilding, and how stored and new items are distinguished may differ.
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

-- name: compare_details
SELECT count(*) FILTER (WHERE b.product_id IS NULL) AS added, count(*) FILTER (WHERE a.product_id IS NULL) AS removed,
       count(*) FILTER (WHERE a.product_id IS NOT NULL AND b.product_id IS NOT NULL) AS changed
  FROM (SELECT s.* FROM product_details s JOIN catalog_products p ON p.id = s.product_id WHERE p.dispensary_id = %(id)s) a
  FULL JOIN details_before b ON (b.product_id, b.seen_from) = (a.product_id, a.seen_from)
 WHERE a.product_id IS NULL OR b.product_id IS NULL OR to_jsonb(a) <> to_jsonb(b);

-- name: compare_crawls
SELECT count(*) FILTER (WHERE b.crawled_at IS NULL) AS added, count(*) FILTER (WHERE a.crawled_at IS NULL) AS removed,
       count(*) FILTER (WHERE a.crawled_at IS NOT NULL AND b.crawled_at IS NOT NULL) AS changed
  FROM (SELECT * FROM store_crawls WHERE dispensary_id = %(id)s) a
  FULL JOIN crawls_before b ON b.crawled_at = a.crawled_at
 WHERE a.crawled_at IS NULL OR b.crawled_at IS NULL OR to_jsonb(a) <> to_jsonb(b);

-- name: differing_products
-- A few of the products that differ, or whose history does.
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
    OR (SELECT jsonb_agg(to_jsonb(s) ORDER BY s.seen_from) FROM product_details s WHERE s.product_id = a.id)
       IS DISTINCT FROM (SELECT jsonb_agg(to_jsonb(s) ORDER BY s.seen_from) FROM details_before s WHERE s.product_id = b.id)
 ORDER BY 1, 2 LIMIT %(limit)s;

-- From here on: products as they were after one of the store's crawls, `at` (restore_state.py).

-- name: create_products_then
-- The state that each product was in; when it was last read, as far as the table knows; when it was last seen where it was absent.
CREATE TEMPORARY TABLE IF NOT EXISTS products_then (
  LIKE product_states, read_at timestamptz, later boolean, last_seen_at timestamptz, misses smallint
) ON COMMIT DELETE ROWS;

-- name: create_products_read
-- What the products were like in words, as menus read by today's normalizer say it.
CREATE TEMPORARY TABLE IF NOT EXISTS products_read (LIKE catalog_products INCLUDING DEFAULTS) ON COMMIT DELETE ROWS;

-- name: snapshot_state_at
-- All that are not in that moment's state of being gone to this day. `later` are those that were seen since, so that their rows may say
-- what they were like later.
INSERT INTO products_then
SELECT DISTINCT ON (s.product_id) s.*,
       CASE WHEN s.present THEN least(coalesce(s.seen_to, %(at)s), %(at)s)
            ELSE (SELECT o.seen_to FROM product_history o WHERE o.product_id = s.product_id AND o.ended_at = s.seen_from) END,
       p.last_seen_at IS NULL OR p.last_seen_at > %(at)s,
       CASE WHEN s.present AND (s.seen_to IS NULL OR s.seen_to >= %(at)s) THEN NULL ELSE p.last_seen_at END,
       0
  FROM states_before s JOIN products_before p ON p.id = s.product_id
 WHERE s.seen_from <= %(at)s
   AND NOT (p.consecutive_misses = 3 AND p.state_from <= %(at)s AND p.last_seen_at < p.state_from)
 ORDER BY s.product_id, s.seen_from DESC;

-- name: without_state
-- Products of that time whose history of that time is no longer kept.
SELECT count(*) AS products FROM products_before p
 WHERE p.first_seen_at <= %(at)s AND NOT EXISTS (SELECT FROM states_before s WHERE s.product_id = p.id AND s.seen_from <= %(at)s);

-- name: absent_then
-- Those that the crawl did not see: in which state, and since when.
SELECT s.product_id, p.provider, p.provider_product_id, s.present, s.seen_from, s.read_at, s.later, s.last_seen_at
  FROM products_then s JOIN products_before p ON p.id = s.product_id
 WHERE NOT s.present OR s.seen_to < %(at)s;

-- name: crawls_until
-- What crawls say of products that they did not see: whether the menu was whole, what could not be read on it, and whether there were items
-- that cannot be distinguished.
SELECT c.crawled_at, y.platform, y.is_partial IS NOT TRUE AS whole,
       EXISTS (SELECT FROM jsonb_array_elements(c.warnings) w WHERE w -> 'fatal' = 'true' AND w ->> 'product_id' IS NULL) AS nameless,
       ARRAY (SELECT w ->> 'product_id' FROM jsonb_array_elements(c.warnings) w
               WHERE w -> 'fatal' = 'true' AND w ->> 'product_id' IS NOT NULL) AS unread
  FROM store_crawls c LEFT JOIN raw_crawl_payloads y ON y.id = c.payload_id
 WHERE c.dispensary_id = %(id)s AND c.crawled_at BETWEEN %(first)s AND %(at)s ORDER BY c.crawled_at;

-- name: count_misses
UPDATE products_then s SET read_at = w.read_at, last_seen_at = w.seen, misses = w.misses
  FROM unnest(%(ids)s::bigint[], %(read_at)s::timestamptz[], %(seen)s::timestamptz[], %(misses)s::smallint[]) w(id, read_at, seen, misses)
 WHERE s.product_id = w.id;

-- name: products_to_read
-- Products whose words must come from a menu: those of one crawl together.
SELECT s.read_at, p.provider, jsonb_object_agg(p.provider_product_id, p.id) AS ids
  FROM products_then s JOIN products_before p ON p.id = s.product_id
 WHERE s.later AND NOT EXISTS (SELECT FROM products_read r WHERE r.id = s.product_id)
 GROUP BY s.read_at, p.provider;

-- name: payload_of_crawl
SELECT y.* FROM store_crawls c JOIN raw_crawl_payloads y ON y.id = c.payload_id
 WHERE c.dispensary_id = %(id)s AND c.crawled_at = %(at)s;

-- name: unread
-- Products that no menu was found for: their own words stand, and where these are of a later time the next item is read whatever it is.
INSERT INTO products_read
SELECT r.* FROM products_before b JOIN products_then s ON s.product_id = b.id
 CROSS JOIN LATERAL jsonb_populate_record(b, CASE WHEN s.later THEN '{"content_hash": ""}' ELSE '{}' END::jsonb) r
 WHERE NOT EXISTS (SELECT FROM products_read o WHERE o.id = b.id);

-- name: restore_products
-- The state, batch, lab values and sold count as history has them, words and weights as they were read. Where the two do not say the same of
-- these, history is right, what a unit costs goes with a price that is another, and the next item is read whatever it is.
UPDATE catalog_products p SET
       content_hash = CASE WHEN NOT s.later
              OR (s.prices, s.price_rec, s.price_rec_special, s.price_med, s.price_med_special, s.thc_lo, s.thc_hi, s.thc_unit, s.cbd_lo, s.cbd_hi, s.cbd_unit)
                 IS NOT DISTINCT FROM (option_prices(r.variants), r.price_rec, r.price_rec_special, r.price_med, r.price_med_special, r.thc_lo,
                 r.thc_hi, r.thc_unit, r.cbd_lo, r.cbd_hi, r.cbd_unit)
             AND (NOT s.present OR (s.stock, s.stock_status, s.quantity, s.quantity_capped)
                 IS NOT DISTINCT FROM (option_stock(r.variants), r.stock_status, r.quantity, r.quantity_capped))
             AND (d.batch, d.cannabinoids, d.terpenes, d.quantity_sold)
                 IS NOT DISTINCT FROM (r.batch, r.cannabinoids, r.terpenes, r.quantity_sold)
              THEN r.content_hash ELSE '' END,
       name_raw = r.name_raw, name = r.name, brand_name_raw = r.brand_name_raw, brand_name = r.brand_name, category = r.category,
       subcategory = r.subcategory, strain_type = r.strain_type, status_raw = r.status_raw, cannabinoids = d.cannabinoids,
       terpenes = d.terpenes, batch = d.batch, quantity_sold = d.quantity_sold,
       details_from = CASE WHEN d.product_id IS NOT NULL THEN nullif(d.seen_from, p.first_seen_at)
                           WHEN coalesce(p.details_from, '-infinity') <= %(at)s THEN p.details_from
                           ELSE (SELECT max(o.ended_at) FROM details_before o WHERE o.product_id = s.product_id AND o.ended_at <= %(at)s) END,
       specials = r.specials, image_url = r.image_url, images = r.images, description = r.description,
       platform_created_at = r.platform_created_at, platform_updated_at = r.platform_updated_at, extra = r.extra,
       brand_description_hash = r.brand_description_hash,
       category_canon = r.category_canon, subcategory_canon = r.subcategory_canon, strain_canon = r.strain_canon,
       price_rec = s.price_rec, price_rec_special = s.price_rec_special, price_med = s.price_med, price_med_special = s.price_med_special,
       stock_status = s.stock_status, is_in_stock = CASE s.stock_status WHEN 'in_stock' THEN true WHEN 'oos' THEN false END,
       quantity = s.quantity, quantity_capped = s.quantity_capped, thc_lo = s.thc_lo, thc_hi = s.thc_hi, thc_unit = s.thc_unit,
       cbd_lo = s.cbd_lo, cbd_hi = s.cbd_hi, cbd_unit = s.cbd_unit,
       variants = CASE WHEN (option_prices(r.variants), option_stock(r.variants)) = (s.prices, s.stock) THEN r.variants ELSE (
         SELECT coalesce(jsonb_agg(
             coalesce(o.v - '{price_rec,special_rec,price_med,special_med,quantity,stock_status,capped}'::text[], '{}')
             - CASE WHEN option_prices(jsonb_build_array(o.v)) -> 0 = t.price THEN '{}' ELSE '{price_per_g,price_per_piece,price_per_mg}' END::text[]
             || jsonb_strip_nulls(jsonb_build_object('option', t.price -> 0, 'price_rec', t.price -> 1, 'special_rec', t.price -> 2,
                                                     'price_med', t.price -> 3, 'special_med', t.price -> 4, 'quantity', t.stock -> 2,
                                                     'stock_status', nullif(t.stock -> 1, '"unknown"'), 'capped', nullif(t.stock -> 3, 'false')))
             ORDER BY t.n), '[]')
           FROM (SELECT x.*, row_number() OVER (PARTITION BY price -> 0 ORDER BY n) AS k
                   FROM ROWS FROM (jsonb_array_elements(s.prices), jsonb_array_elements(s.stock)) WITH ORDINALITY x(price, stock, n)) t
           LEFT JOIN (SELECT e.v, row_number() OVER (PARTITION BY v -> 'option' ORDER BY n) AS k
                        FROM jsonb_array_elements(r.variants) WITH ORDINALITY e(v, n)) o ON o.v -> 'option' = t.price -> 0 AND o.k = t.k) END,
       consecutive_misses = s.misses, last_seen_at = s.last_seen_at, present = s.present, state_from = s.seen_from,
       state_seen_to = CASE WHEN s.present AND s.last_seen_at IS NOT NULL THEN s.seen_to END,
       changed_at = CASE WHEN p.changed_at <= %(at)s THEN p.changed_at ELSE s.seen_from END
  FROM products_then s JOIN products_read r ON r.id = s.product_id
  LEFT JOIN details_before d ON d.product_id = s.product_id AND d.seen_from <= %(at)s AND (d.ended_at IS NULL OR d.ended_at > %(at)s)
 WHERE p.id = s.product_id;

-- name: unmoved
-- Products that had changed later, and have not in the rebuilding: when they last had is still to be found. `still` says that there is a
-- crawl of that later time. `read_at` is the last crawl of their state.
SELECT p.id, p.provider, p.provider_product_id, s.seen_from, s.read_at, b.changed_at AS before,
       EXISTS (SELECT FROM store_crawls c WHERE c.dispensary_id = p.dispensary_id AND c.crawled_at = b.changed_at) AS still
  FROM catalog_products p JOIN products_then s ON s.product_id = p.id JOIN products_before b ON b.id = p.id
 WHERE b.changed_at > %(at)s AND p.changed_at <= %(at)s AND s.present;

-- name: crawls_between
SELECT crawled_at, changed FROM store_crawls
 WHERE dispensary_id = %(id)s AND crawled_at BETWEEN %(first)s AND %(at)s ORDER BY crawled_at DESC;

-- name: date_change
UPDATE catalog_products p SET changed_at = w.at FROM unnest(%(ids)s::bigint[], %(times)s::timestamptz[]) w(id, at) WHERE p.id = w.id;
