-- Keeping what shoppers look through like the catalogue.

-- name: take_lock
-- One at a time: stores share items, and whoever comes second would count what the first has not written yet.
SELECT pg_try_advisory_lock(hashtext('shopping shelf'));

-- name: free_lock
SELECT pg_advisory_unlock(hashtext('shopping shelf'));

-- name: stores_to_shelve
-- Stores whose menu is another one than the one that was taken in, and those that are not shown any more.
SELECT coalesce(d.id, s.dispensary_id) AS id
  FROM dispensaries d FULL JOIN shop_stores s ON s.dispensary_id = d.id
 WHERE CASE WHEN d.crawl_enabled AND d.last_crawled_at IS NOT NULL
            THEN (d.last_crawled_at, d.last_payload_id, %(rules)s::integer) IS DISTINCT FROM (s.crawled_at, s.payload_id, s.rules)
                 OR (d.latitude IS NOT NULL AND (d.latitude, d.longitude) IS DISTINCT FROM (s.latitude, s.longitude))
            ELSE s.dispensary_id IS NOT NULL END
 ORDER BY d.last_crawled_at, 1 LIMIT %(most)s;

-- name: store
SELECT id, last_crawled_at, last_payload_id, latitude, longitude, zipcode FROM dispensaries
 WHERE id = %(id)s AND crawl_enabled AND last_crawled_at IS NOT NULL;

-- name: known_store
SELECT count(*) FROM shop_stores WHERE dispensary_id = %(id)s;

-- name: changed_products
-- Products on the store's menu that are not on the shelf as they are now. The stamp stands for all that a row is made of.
SELECT p.id, p.stamp, p.name, p.brand_name, p.category_canon, p.subcategory_canon, p.strain_canon, p.category, p.subcategory, p.strain_type,
       effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special) AS price,
       coalesce(p.price_rec, p.price_med) AS regular, p.variants, CASE p.thc_unit WHEN '%%' THEN p.thc_hi END AS thc, p.is_in_stock,
       p.state_from, extract(epoch FROM p.first_seen_at)::integer AS first_seen,
       effective_price(b.price_rec, b.price_rec_special, b.price_med, b.price_med_special) AS price_before,
       o.was, o.price AS price_shelved, o.item_id AS item_shelved
  FROM (SELECT c.*, hashtextextended(encode(c.content_hash, 'hex') || c.changed_at || c.stock_status, %(rules)s) AS stamp
          FROM catalog_products c WHERE c.dispensary_id = %(id)s AND c.last_seen_at IS NULL) p
  LEFT JOIN shop_offers o ON o.product_id = p.id
  LEFT JOIN past_states b ON b.product_id = p.id AND b.ended_at = p.state_from
 WHERE o.stamp IS DISTINCT FROM p.stamp;

-- name: put_brands
INSERT INTO shop_brands (slug, name) SELECT * FROM unnest(%(slugs)s::text[], %(names)s::text[])
    ON CONFLICT (slug) DO NOTHING;

-- name: brand_ids
SELECT slug, id FROM shop_brands WHERE slug = ANY (%(slugs)s::text[]);

-- name: put_items
WITH n AS MATERIALIZED (
  SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) n(key uuid, name text, brand_id integer, category text, subcategory text, strain text,
         a text, b text, c text, first_seen integer)
), i AS (
  INSERT INTO shop_items (key, name, brand_id, category, subcategory, strain, first_seen)
  SELECT key, name, brand_id, category, subcategory, strain, first_seen FROM n
      ON CONFLICT (key) DO NOTHING
  RETURNING key, id
), w AS (
  INSERT INTO shop_item_words (item_id, words)
  SELECT i.id, setweight(to_tsvector('simple', n.a), 'A') || setweight(to_tsvector('simple', n.b), 'B') || setweight(to_tsvector('simple', n.c), 'C')
    FROM i JOIN n USING (key))
SELECT key, id FROM i;

-- name: item_ids
SELECT key, id FROM shop_items WHERE key = ANY (%(keys)s::uuid[]);

-- name: put_offers
INSERT INTO shop_offers (product_id, store_id, item_id, stamp, since, first_seen, price, regular, was, per_gram, thc, brand_id, in_stock,
       category, strain, sizes)
SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) n(product_id bigint, store_id integer, item_id bigint, stamp bigint, since timestamptz,
       first_seen integer, price integer, regular integer, was integer, per_gram integer, thc integer, brand_id integer, in_stock boolean,
       category text, strain text, sizes text[])
    ON CONFLICT (product_id) DO UPDATE SET store_id = excluded.store_id, item_id = excluded.item_id, stamp = excluded.stamp,
       since = excluded.since, first_seen = excluded.first_seen, price = excluded.price, regular = excluded.regular, was = excluded.was,
       per_gram = excluded.per_gram, thc = excluded.thc, brand_id = excluded.brand_id, in_stock = excluded.in_stock,
       category = excluded.category, strain = excluded.strain, sizes = excluded.sizes;

-- name: take_down
-- Offers of the store that its menu does not hold; all of them where it is not shown any more.
DELETE FROM shop_offers o
 WHERE o.store_id = %(id)s
   AND (NOT %(shown)s OR NOT EXISTS (SELECT FROM catalog_products p
                                      WHERE p.id = o.product_id AND p.dispensary_id = o.store_id AND p.last_seen_at IS NULL))
RETURNING o.item_id;

-- name: touch
INSERT INTO shop_touched SELECT * FROM unnest(%(ids)s::bigint[]) ON CONFLICT DO NOTHING;

-- name: sum_up
-- What all offers of touched items say together, of some at a time.
WITH touched AS (
  DELETE FROM shop_touched WHERE item_id IN (SELECT item_id FROM shop_touched LIMIT %(most)s) RETURNING item_id),
a AS (
  SELECT w.item_id AS id, count(DISTINCT o.store_id) AS stores, count(DISTINCT o.store_id) FILTER (WHERE o.in_stock) AS in_stock,
         coalesce(min(o.price) FILTER (WHERE o.in_stock IS NOT false), min(o.price)) AS price,
         coalesce(min(o.per_gram) FILTER (WHERE o.in_stock IS NOT false), min(o.per_gram)) AS per_gram,
         max(o.thc) AS thc, coalesce(bool_or(o.regular IS NOT NULL AND o.in_stock IS NOT false), false) AS on_special,
         min(o.first_seen) AS first_seen, min(o.strain) AS strain,
         (min(ARRAY[CASE WHEN o.in_stock IS false THEN 1 ELSE 0 END, coalesce(o.price, 2147483647), o.product_id]))[3] AS best_product_id,
         (SELECT array_agg(DISTINCT z ORDER BY z) FROM unnest(array_agg(DISTINCT array_to_string(o.sizes, E'\x1f'))) s(joined)
           CROSS JOIN unnest(string_to_array(s.joined, E'\x1f')) z WHERE s.joined <> '') AS sizes
    FROM touched w LEFT JOIN shop_offers o ON o.item_id = w.item_id
   GROUP BY w.item_id),
summed AS (
  UPDATE shop_items i
     SET stores = a.stores, in_stock = a.in_stock, price = a.price, per_gram = a.per_gram, thc = a.thc, on_special = a.on_special,
         sizes = coalesce(a.sizes, '{}'), first_seen = coalesce(a.first_seen, i.first_seen), strain = coalesce(i.strain, a.strain),
         best_product_id = a.best_product_id, changed_at = now()
    FROM a
   WHERE i.id = a.id
     AND (i.stores, i.in_stock, i.price, i.per_gram, i.thc, i.on_special, i.sizes, i.best_product_id)
         IS DISTINCT FROM (a.stores, a.in_stock, a.price, a.per_gram, a.thc, a.on_special, coalesce(a.sizes, '{}'), a.best_product_id))
SELECT count(*) FROM touched;

-- name: put_words
WITH new AS (
  INSERT INTO shop_words (word) SELECT DISTINCT word FROM unnest(%(words)s::text[], %(spellings)s::text[]) n(word, spelling)
      ON CONFLICT (word) DO NOTHING RETURNING word)
INSERT INTO shop_spellings (spelling, word)
SELECT n.spelling, n.word FROM unnest(%(words)s::text[], %(spellings)s::text[]) n(word, spelling) JOIN new USING (word)
    ON CONFLICT DO NOTHING;

-- name: shelved
INSERT INTO shop_stores (dispensary_id, crawled_at, payload_id, rules, offers, latitude, longitude)
VALUES (%(id)s, %(crawled_at)s, %(payload_id)s, %(rules)s, (SELECT count(*) FROM shop_offers WHERE store_id = %(id)s), %(latitude)s, %(longitude)s)
    ON CONFLICT (dispensary_id) DO UPDATE SET crawled_at = excluded.crawled_at, payload_id = excluded.payload_id, rules = excluded.rules,
       offers = excluded.offers, latitude = excluded.latitude, longitude = excluded.longitude, shelved_at = now();

-- name: not_shown
DELETE FROM shop_stores WHERE dispensary_id = %(id)s;

-- name: totals_age
SELECT extract(epoch FROM now() - max(made_at))::double precision FROM shop_totals;

-- name: clear_totals
DELETE FROM shop_totals;

-- name: make_totals
INSERT INTO shop_totals (kind, name, items, stores, price)
SELECT 'all', '', (SELECT count(*) FROM shop_items WHERE stores > 0), (SELECT count(*) FROM shop_stores), NULL
 UNION ALL
SELECT 'category', category, count(*), max(stores), min(price) FROM shop_items WHERE stores > 0 GROUP BY category
 UNION ALL
(SELECT 'brand', b.slug, count(*), max(i.stores), min(i.price) FROM shop_items i JOIN shop_brands b ON b.id = i.brand_id
  WHERE i.stores > 0 GROUP BY b.slug ORDER BY 3 DESC LIMIT 2000);

-- name: forget_items
-- What nobody has had for so long, and nobody waits for. Its address is then one that does not exist.
DELETE FROM shop_items WHERE id IN (
  SELECT i.id FROM shop_items i
   WHERE i.stores = 0 AND i.changed_at < now() - make_interval(days => %(days)s)
     AND NOT EXISTS (SELECT FROM shop_watches w WHERE w.item_id = i.id) AND NOT EXISTS (SELECT FROM shop_offers o WHERE o.item_id = i.id)
   ORDER BY i.changed_at LIMIT 1000);
