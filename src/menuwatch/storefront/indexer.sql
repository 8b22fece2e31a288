-- Keeps the storefront index in step with the catalog.

-- name: take_lock
-- One process at a time: stores share items, and a second one would miss what the first has not committed yet.
SELECT pg_try_advisory_lock(hashtext('storefront index')) AS locked;

-- name: free_lock
SELECT pg_advisory_unlock(hashtext('storefront index'));

-- name: changed_stores
-- Stores whose menu is newer than the indexed one, whose listings were matched or whose location changed, and indexed stores that are no
-- longer visible.
SELECT coalesce(d.id, s.dispensary_id) AS id
  FROM dispensaries d FULL JOIN storefront_stores s ON s.dispensary_id = d.id
  LEFT JOIN location_links l ON l.dispensary_id = d.id
 WHERE coalesce(d.id, s.dispensary_id) <> ALL (%(exclude)s::integer[]) AND
       CASE WHEN coalesce(d.shown, d.crawl_enabled) AND d.last_crawled_at IS NOT NULL
            THEN (d.last_crawled_at, d.last_payload_id, %(index_version)s::integer) IS DISTINCT FROM (s.crawled_at, s.payload_id, s.index_version)
                 OR (d.latitude IS NOT NULL AND (d.latitude, d.longitude) IS DISTINCT FROM (s.latitude, s.longitude))
                 OR s.location_key <> coalesce(l.location_id, -d.id) OR d.id IN (SELECT dispensary_id FROM storefront_dirty_stores)
            ELSE s.dispensary_id IS NOT NULL END
 ORDER BY d.last_crawled_at, 1 LIMIT %(limit)s;

-- name: store
SELECT d.id, d.last_crawled_at, d.last_payload_id, d.latitude, d.longitude, d.zipcode, coalesce(l.location_id, -d.id) AS location_key,
       s.location_key AS indexed_location_key
  FROM dispensaries d LEFT JOIN location_links l ON l.dispensary_id = d.id LEFT JOIN storefront_stores s ON s.dispensary_id = d.id
 WHERE d.id = %(id)s AND coalesce(d.shown, d.crawl_enabled) AND d.last_crawled_at IS NOT NULL;

-- name: clear_dirty_store
-- Before its listings are read: what is noted after that is read by the next run.
DELETE FROM storefront_dirty_stores WHERE dispensary_id = %(id)s;

-- name: move_to_location
UPDATE storefront_offers SET location_key = %(location_key)s WHERE store_id = %(id)s AND location_key <> %(location_key)s RETURNING item_id;

-- name: changed_products
-- Products on the store's menu whose offers are missing, outdated or of another item. The source version covers all values that an offer is
-- built from. A product that is not matched yet has no offer; one that is matched again keeps the item of its offers until then.
SELECT p.id, p.source_version, p.name, p.brand_name, p.category_canon, p.strain_canon, p.variants, CASE p.thc_unit WHEN '%%' THEN p.thc_hi END AS thc,
       p.is_in_stock, p.state_from, extract(epoch FROM p.first_seen_at)::integer AS first_seen,
       (SELECT h.prices::text FROM product_history h WHERE h.product_id = p.id AND h.ended_at = p.state_from) AS prices_before,
       (SELECT jsonb_object_agg(f.size, jsonb_build_array(f.price, f.previous_price)) FROM storefront_offers f WHERE f.product_id = p.id) AS indexed_prices,
       o.item_id AS indexed_item_id, i.id AS item_id
  FROM (SELECT c.*, hashtextextended(encode(c.content_hash, 'hex') || c.changed_at || c.stock_status, %(index_version)s) AS source_version
          FROM catalog_products c WHERE c.dispensary_id = %(id)s AND c.last_seen_at IS NULL) p
  LEFT JOIN LATERAL (SELECT f.item_id, f.source_version FROM storefront_offers f WHERE f.product_id = p.id LIMIT 1) o ON true
  LEFT JOIN product_matches m ON m.product_id = p.id
  LEFT JOIN canonical_products c ON c.id = m.canonical_product_id
 CROSS JOIN LATERAL (SELECT coalesce(CASE WHEN c.merged_into IS NULL THEN c.id ELSE live_canonical_product(c.id) END, o.item_id) AS id) i
 WHERE i.id IS NOT NULL AND (o.source_version IS DISTINCT FROM p.source_version OR o.item_id <> i.id);

-- name: usual_per_gram
SELECT name, per_gram FROM storefront_totals WHERE kind = 'category' AND per_gram IS NOT NULL;

-- name: put_offers
-- Brand, category and strain are those of the item, so that a search near a place counts it as a search everywhere does.
INSERT INTO storefront_offers (product_id, size, size_rank, from_name, store_id, location_key, item_id, source_version, changed_at, first_seen, price,
       regular, previous_price, per_gram, per_dose, thc, brand_id, in_stock, category, strain)
SELECT n.product_id, n.size, n.size_rank, n.from_name, %(store_id)s, %(location_key)s, n.item_id, n.source_version, n.changed_at, n.first_seen, n.price,
       n.regular, n.previous_price, n.per_gram, n.per_dose, n.thc, i.brand_id, n.in_stock, i.category, coalesce(i.strain, n.strain)
  FROM jsonb_to_recordset(%(rows)s::jsonb) n(product_id bigint, size text, size_rank integer, from_name boolean, item_id bigint,
       source_version bigint, changed_at timestamptz, first_seen integer, price integer, regular integer, previous_price integer, per_gram integer,
       per_dose integer, thc integer, in_stock boolean, strain text)
  JOIN storefront_items i ON i.id = n.item_id
    ON CONFLICT (product_id, size) DO UPDATE SET size_rank = excluded.size_rank, from_name = excluded.from_name, store_id = excluded.store_id,
       location_key = excluded.location_key, item_id = excluded.item_id, source_version = excluded.source_version, changed_at = excluded.changed_at,
       first_seen = excluded.first_seen, price = excluded.price, regular = excluded.regular, previous_price = excluded.previous_price,
       per_gram = excluded.per_gram, per_dose = excluded.per_dose, thc = excluded.thc, brand_id = excluded.brand_id, in_stock = excluded.in_stock,
       category = excluded.category, strain = excluded.strain;

-- name: delete_sizes
-- Sizes that the listings, all of whose sizes are given, no longer have.
DELETE FROM storefront_offers o
 WHERE o.product_id = ANY (%(products)s::bigint[])
   AND NOT EXISTS (SELECT FROM unnest(%(products)s::bigint[], %(sizes)s::text[]) n(product_id, size) WHERE n.product_id = o.product_id AND n.size = o.size);

-- name: delete_offers
-- Deletes offers of the store that are not on its menu; all of them if it is no longer visible.
DELETE FROM storefront_offers o
 WHERE o.store_id = %(id)s
   AND (NOT %(visible)s OR NOT EXISTS (SELECT FROM catalog_products p
                                      WHERE p.id = o.product_id AND p.dispensary_id = o.store_id AND p.last_seen_at IS NULL))
RETURNING o.item_id;

-- name: mark_dirty
INSERT INTO storefront_dirty_items SELECT * FROM unnest(%(ids)s::bigint[]) ON CONFLICT DO NOTHING;

-- name: aggregate_items
-- Sums up all offers of a batch of dirty items, by size and for the item. Prices of offers that are out of stock count only where no other has one;
-- a price of a few cents is a placeholder or a promotion (options.LOWEST_PRICE), and counts nowhere.
WITH dirty AS (
  DELETE FROM storefront_dirty_items WHERE item_id IN (SELECT item_id FROM storefront_dirty_items LIMIT %(limit)s) RETURNING item_id),
o AS MATERIALIZED (SELECT o.*, o.in_stock IS NOT false AS sold, o.price >= 10 AS real FROM dirty w JOIN storefront_offers o ON o.item_id = w.item_id),
z AS MATERIALIZED (
  SELECT item_id, size, min(size_rank) AS size_rank, count(DISTINCT location_key) AS stores, count(DISTINCT location_key) FILTER (WHERE in_stock) AS in_stock,
         coalesce(min(price) FILTER (WHERE sold AND real), min(price) FILTER (WHERE real)) AS price, coalesce(min(per_gram) FILTER (WHERE sold), min(per_gram)) AS per_gram,
         coalesce(min(per_dose) FILTER (WHERE sold), min(per_dose)) AS per_dose, min(price) FILTER (WHERE sold AND real AND regular IS NOT NULL) AS special_price,
         min(per_gram) FILTER (WHERE sold AND regular IS NOT NULL) AS special_per_gram, min(per_dose) FILTER (WHERE sold AND regular IS NOT NULL) AS special_per_dose
    FROM o GROUP BY item_id, size),
gone AS (
  DELETE FROM storefront_item_sizes s USING dirty w
   WHERE s.item_id = w.item_id AND NOT EXISTS (SELECT FROM z WHERE z.item_id = s.item_id AND z.size = s.size)),
put AS (
  INSERT INTO storefront_item_sizes AS s (item_id, size, size_rank, stores, in_stock, price, per_gram, per_dose, special_price, special_per_gram, special_per_dose)
  SELECT z.* FROM z JOIN storefront_items i ON i.id = z.item_id
      ON CONFLICT (item_id, size) DO UPDATE SET size_rank = excluded.size_rank, stores = excluded.stores, in_stock = excluded.in_stock,
         price = excluded.price, per_gram = excluded.per_gram, per_dose = excluded.per_dose, special_price = excluded.special_price,
         special_per_gram = excluded.special_per_gram, special_per_dose = excluded.special_per_dose
   WHERE (s.stores, s.in_stock, s.price, s.per_gram, s.per_dose, s.special_price, s.special_per_gram, s.special_per_dose)
         IS DISTINCT FROM (excluded.stores, excluded.in_stock, excluded.price, excluded.per_gram, excluded.per_dose, excluded.special_price,
                           excluded.special_per_gram, excluded.special_per_dose)),
a AS (
  SELECT w.item_id AS id, count(DISTINCT o.location_key) AS stores, count(DISTINCT o.location_key) FILTER (WHERE o.in_stock) AS in_stock,
         count(DISTINCT o.location_key) FILTER (WHERE o.sold) AS selling,
         coalesce(min(o.price) FILTER (WHERE o.sold AND o.real), min(o.price) FILTER (WHERE o.real)) AS price,
         coalesce(min(o.per_gram) FILTER (WHERE o.sold), min(o.per_gram)) AS per_gram,
         coalesce(min(o.per_dose) FILTER (WHERE o.sold), min(o.per_dose)) AS per_dose,
         max(o.thc) AS thc, coalesce(bool_or(o.regular IS NOT NULL AND o.sold), false) AS on_special,
         min(o.first_seen) AS first_seen, min(o.strain) AS strain
    FROM dirty w LEFT JOIN o ON o.item_id = w.item_id
   GROUP BY w.item_id),
s AS (SELECT item_id, array_agg(size ORDER BY size_rank, size) AS sizes FROM z WHERE size <> '' GROUP BY item_id),
n AS (
  SELECT a.*, s.sizes, CASE WHEN a.price IS NULL THEN -2000 WHEN i.category IN ('accessory', 'apparel') THEN -1000 ELSE 0 END
              + least(2 * a.selling + a.in_stock, 900) AS popularity
    FROM a JOIN storefront_items i ON i.id = a.id LEFT JOIN s ON s.item_id = a.id),
summed AS (
  UPDATE storefront_items i
     SET stores = n.stores, in_stock = n.in_stock, price = n.price, per_gram = n.per_gram, per_dose = n.per_dose, thc = n.thc,
         on_special = n.on_special, popularity = n.popularity, sizes = coalesce(n.sizes, '{}'), first_seen = coalesce(n.first_seen, i.first_seen),
         strain = coalesce(i.strain, n.strain), changed_at = now()
    FROM n
   WHERE i.id = n.id
     AND (i.stores, i.in_stock, i.price, i.per_gram, i.per_dose, i.thc, i.on_special, i.popularity, i.sizes)
         IS DISTINCT FROM (n.stores, n.in_stock, n.price, n.per_gram, n.per_dose, n.thc, n.on_special, n.popularity, coalesce(n.sizes, '{}')))
SELECT count(*) FROM dirty;

-- name: store_indexed
INSERT INTO storefront_stores (dispensary_id, crawled_at, payload_id, index_version, location_key, offers, latitude, longitude)
VALUES (%(id)s, %(last_crawled_at)s, %(last_payload_id)s, %(index_version)s, %(location_key)s, (SELECT count(DISTINCT product_id) FROM storefront_offers WHERE store_id = %(id)s), %(latitude)s, %(longitude)s)
    ON CONFLICT (dispensary_id) DO UPDATE SET crawled_at = excluded.crawled_at, payload_id = excluded.payload_id, index_version = excluded.index_version,
       location_key = excluded.location_key, offers = excluded.offers, latitude = excluded.latitude, longitude = excluded.longitude, indexed_at = now();

-- name: delete_store
DELETE FROM storefront_stores WHERE dispensary_id = %(id)s;

-- name: totals_age
-- Age of the totals in seconds, the number of items in them, and whether stores were indexed or left since.
SELECT extract(epoch FROM now() - max(t.made_at))::double precision AS age, coalesce(max(t.items) FILTER (WHERE t.kind = 'all'), 0) AS items,
       coalesce((SELECT max(indexed_at) FROM storefront_stores) > max(t.made_at), false)
         OR (SELECT count(DISTINCT location_key) FROM storefront_stores) IS DISTINCT FROM max(t.stores) FILTER (WHERE t.kind = 'all') AS outdated
  FROM storefront_totals t;

-- name: clear_totals
DELETE FROM storefront_totals;

-- name: make_totals
-- A median of few products says little.
INSERT INTO storefront_totals (kind, name, items, stores, price, per_gram)
SELECT 'all', '', (SELECT count(*) FROM storefront_items WHERE stores > 0), (SELECT count(DISTINCT location_key) FROM storefront_stores), NULL, NULL
 UNION ALL
SELECT 'category', category, count(*), max(stores), min(price),
       CASE WHEN count(per_gram) >= 50 THEN percentile_disc(0.5) WITHIN GROUP (ORDER BY per_gram) END
  FROM storefront_items WHERE stores > 0 GROUP BY category
 UNION ALL
(SELECT 'brand', b.slug, count(*), max(i.stores), min(i.price), NULL FROM storefront_items i JOIN brands b ON b.id = i.brand_id
  WHERE i.stores > 0 GROUP BY b.slug ORDER BY 3 DESC LIMIT 2000);

-- name: delete_unused_items
-- Deletes items that no store has offered for so long and no watch waits for. Their pages then do not exist.
DELETE FROM storefront_items WHERE id IN (
  SELECT i.id FROM storefront_items i
   WHERE i.stores = 0 AND i.changed_at < now() - make_interval(days => %(days)s)
     AND NOT EXISTS (SELECT FROM price_watches w WHERE w.item_id = i.id) AND NOT EXISTS (SELECT FROM storefront_offers o WHERE o.item_id = i.id)
   ORDER BY i.changed_at LIMIT 1000);

-- name: forget_stores
-- Stores that were removed.
DELETE FROM storefront_dirty_stores t WHERE NOT EXISTS (SELECT FROM dispensaries d WHERE d.id = t.dispensary_id);
