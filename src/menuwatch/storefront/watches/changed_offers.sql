-- Offers that changed, and the watches that they may concern.

-- name: take
-- Takes what the changed offers of a store were, with what they are now. A store whose offers are all new was just added, or is shown again:
-- nothing about it is new to anybody.
WITH former AS (DELETE FROM storefront_former_offers WHERE store_id = %(store_id)s RETURNING *)
SELECT o.product_id, o.item_id, i.name, i.brand_id, i.category, o.strain, nullif(o.size, '') AS size, o.price,
       o.regular, o.per_gram, o.thc, o.in_stock, f.listed, f.price AS former_price, f.regular AS former_regular, f.in_stock AS former_stock,
       to_timestamp(o.first_seen) > s.crawled_at - interval '2 days' AS recent
  FROM former f
  JOIN storefront_offers o ON o.product_id = f.product_id AND o.size = f.size AND o.store_id = f.store_id
  JOIN storefront_items i ON i.id = o.item_id
  JOIN storefront_stores s ON s.dispensary_id = o.store_id
 WHERE EXISTS (SELECT FROM storefront_offers x WHERE x.store_id = %(store_id)s
                  AND NOT EXISTS (SELECT FROM former n WHERE n.product_id = x.product_id AND n.size = x.size AND NOT n.listed))
 ORDER BY o.product_id, o.size_rank;

-- name: store
SELECT id, name, city, state FROM dispensaries WHERE id = %(store_id)s;

-- name: searches
-- Watched searches with the changed items that they find. The strain of an item that is not summed up yet is that of its offers.
SELECT s.id, i.id AS item_id
  FROM storefront_items i
  JOIN storefront_item_words w ON w.item_id = i.id
  JOIN watched_searches s ON (s.category IS NULL OR s.category = i.category) AND (s.brands IS NULL OR i.brand_id = ANY (s.brands))
                         AND (s.words IS NULL OR w.words @@ s.words)
                         AND (s.strains IS NULL OR coalesce(i.strain, (SELECT min(o.strain) FROM storefront_offers o WHERE o.item_id = i.id)) = ANY (s.strains))
 WHERE i.id = ANY (%(items)s::bigint[]);

-- name: search_filters
SELECT id, query, category, coalesce(sizes, '{}') AS sizes, in_stock, special, price_min, price_max, per_gram_max, thc_min, thc_max
  FROM watched_searches WHERE id = ANY (%(ids)s::bigint[]);

-- name: watches
-- Watches of changes that the store may concern. A brand that was merged into another one is watched on under its number.
WITH RECURSIVE b(id) AS (
  SELECT * FROM unnest(%(brands)s::integer[]) UNION SELECT m.id FROM brands m JOIN b ON m.merged_into = b.id
), w AS (
  SELECT * FROM price_watches WHERE subject = 'store' AND store_id = %(store_id)s AND confirmed_at IS NOT NULL
   UNION ALL
  SELECT * FROM price_watches WHERE subject = 'brand' AND brand_id IN (SELECT id FROM b) AND confirmed_at IS NOT NULL
   UNION ALL
  SELECT * FROM price_watches WHERE subject = 'search' AND search_id = ANY (%(searches)s::bigint[]) AND confirmed_at IS NOT NULL
   UNION ALL
  SELECT * FROM price_watches WHERE subject = 'item' AND condition = 'new_deal' AND item_id = ANY (%(items)s::bigint[]) AND confirmed_at IS NOT NULL
)
SELECT w.id, w.item_id, live_brand(w.brand_id) AS brand_id, w.search_id, w.size, w.store_id, w.condition, w.currency, w.amount, w.latitude, w.longitude, w.miles
  FROM w LEFT JOIN storefront_stores s ON s.dispensary_id = %(store_id)s
 WHERE (w.store_id IS NULL OR w.store_id = %(store_id)s)
   AND (w.miles IS NULL OR distance_meters(s.latitude, s.longitude, w.latitude, w.longitude) <= w.miles * 1609.344)
 ORDER BY w.id;

-- name: carried
-- New items that were offered before where a watch looks for them: in another offer of the store, or at other stores around a place or (null)
-- everywhere.
SELECT q.item_id, q.miles, q.latitude, q.longitude
  FROM unnest(%(items)s::bigint[], %(miles)s::integer[], %(latitudes)s::double precision[], %(longitudes)s::double precision[])
       q(item_id, miles, latitude, longitude)
 WHERE EXISTS (SELECT FROM storefront_offers o JOIN storefront_stores s ON s.dispensary_id = o.store_id
                WHERE o.item_id = q.item_id AND (o.product_id, o.size) NOT IN (SELECT * FROM unnest(%(products)s::bigint[], %(sizes)s::text[]))
                  AND (o.store_id = %(store_id)s OR q.miles IS NULL
                       OR distance_meters(s.latitude, s.longitude, q.latitude, q.longitude) <= q.miles * 1609.344));

-- name: lock
-- Messages that are noted as sent meanwhile wait until the new events are there.
SELECT FROM price_watches WHERE id = ANY (%(ids)s::bigint[]) ORDER BY id FOR NO KEY UPDATE;
