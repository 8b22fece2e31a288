-- Search and pages of the storefront. Search statements are planned for their values (`prepare=False`): a filter that is not set is then no
-- part of the plan, and the order is that of an index.

-- piece: item_filter
-- Filter of items.
AND (%(category)s::text IS NULL OR i.category = %(category)s)
AND (%(strains)s::text[] IS NULL OR i.strain = ANY (%(strains)s))
AND (%(brands)s::integer[] IS NULL OR i.brand_id = ANY (%(brands)s))
AND (%(thc_min)s::integer IS NULL OR -coalesce(i.thc, -1) <= -%(thc_min)s::integer)
AND (%(thc_max)s::integer IS NULL OR -coalesce(i.thc, -1) >= -%(thc_max)s::integer)

-- piece: any_size_filter
-- Filter of items by what costs least of them: of one bound or stock alone it says whether any of their offers is in it.
AND (%(price_max)s::integer IS NULL OR i.price <= %(price_max)s) AND (%(per_gram_max)s::integer IS NULL OR i.per_gram <= %(per_gram_max)s)
AND (NOT %(in_stock)s OR i.in_stock > 0)

-- piece: size_filter
-- Filter of the sizes of items. All of it holds for one size.
AND (%(sizes)s::text[] IS NULL OR z.size = ANY (%(sizes)s)) AND (NOT %(in_stock)s OR z.in_stock > 0) AND (NOT %(special)s OR z.special_price IS NOT NULL)
AND (%(price_min)s::integer IS NULL OR CASE WHEN %(special)s THEN z.special_price ELSE z.price END >= %(price_min)s)
AND (%(price_max)s::integer IS NULL OR CASE WHEN %(special)s THEN z.special_price ELSE z.price END <= %(price_max)s)
AND (%(per_gram_max)s::integer IS NULL OR CASE WHEN %(special)s THEN z.special_per_gram ELSE z.per_gram END <= %(per_gram_max)s)

-- piece: offer_filter
-- The same on offers.
AND (%(category)s::text IS NULL OR o.category = %(category)s)
AND (%(strains)s::text[] IS NULL OR o.strain = ANY (%(strains)s))
AND (%(brands)s::integer[] IS NULL OR o.brand_id = ANY (%(brands)s))
{price_filter}
AND (%(thc_min)s::integer IS NULL OR o.thc >= %(thc_min)s) AND (%(thc_max)s::integer IS NULL OR o.thc <= %(thc_max)s)

-- piece: price_filter
-- Filter of offers. All of it holds for one offer.
AND (%(sizes)s::text[] IS NULL OR o.size = ANY (%(sizes)s))
AND (NOT %(in_stock)s OR o.in_stock) AND (NOT %(special)s OR (o.regular IS NOT NULL AND o.in_stock IS NOT false))
AND (%(price_min)s::integer IS NULL OR o.price >= %(price_min)s) AND (%(price_max)s::integer IS NULL OR o.price <= %(price_max)s)
AND (%(per_gram_max)s::integer IS NULL OR o.per_gram <= %(per_gram_max)s)

-- piece: text_filter
-- A text with very many matches is tested on each visited item (a scalar subquery, which is never evaluated for all of them at once).
AND (%(ids)s::bigint[] IS NULL OR i.id = ANY (%(ids)s))
AND (%(broad)s::text IS NULL OR (SELECT w.words @@ %(broad)s::text::tsquery FROM storefront_item_words w WHERE w.item_id = i.id))

-- piece: saved_price
-- The struck price of the size that a card shows, if it is a saving (storefront/deals.py), and whether it is on special at all.
CASE WHEN sale.offered_until > now() - interval '90 days' THEN sale.regular END AS regular, sale.product_id IS NOT NULL AS special

-- piece: sale_of_size
LEFT JOIN storefront_deals sale ON sale.product_id = o.product_id AND sale.size = o.size AND sale.price = o.price

-- piece: key
-- What items are sorted by: the expressions of the indexes. Where words decide, what has no price and accessories still come last.
CASE %(order)s WHEN 'popular' THEN -i.popularity
     WHEN 'price' THEN coalesce(i.price + CASE WHEN i.category IN ('accessory', 'apparel') THEN 1000000000 ELSE 0 END, 2147483647)
     WHEN 'per_gram' THEN coalesce(i.per_gram, 1000000000 + i.per_dose, 2147483647) WHEN 'thc' THEN -coalesce(i.thc, -1)
     WHEN 'newest' THEN -i.first_seen 
     ELSE (SELECT -(1000000 * ts_rank('{0.05, 0.2, 0.5, 1}', r.words, %(words)s::text::tsquery, 1))::integer FROM storefront_item_words r
             WHERE r.item_id = i.id) - CASE WHEN i.popularity < 0 THEN 1000 * i.popularity ELSE 333 * least(i.popularity, 150) END END

-- piece: freshest_menu
-- Of the menus of one location `s`, the one that was fetched last; one with products goes before an empty one (as in location_menus).
NOT EXISTS (SELECT FROM storefront_stores f WHERE f.location_key = s.location_key
               AND (f.offers > 0, f.crawled_at, -f.dispensary_id) > (s.offers > 0, s.crawled_at, -s.dispensary_id))

-- piece: opening_hours
-- What the platform's list of stores says about the hours of a store `d`, if it was read within the last 90 days (platforms/opening_hours.py).
(SELECT jsonb_build_object('pickupHours', l.raw -> 'pickupHours', 'specialHours', l.raw -> 'specialHours', 'working_hours', l.raw -> 'working_hours')
   FROM dutchie_discovery_locations l
  WHERE l.platform = d.platform AND l.platform_dispensary_id = d.platform_dispensary_id AND l.last_seen_at > now() - interval '90 days') AS hours

-- piece: facet_counts
-- Counts of the matches `m` by facet.
SELECT 'all' AS facet, NULL::text AS value, count(*) AS n FROM m
UNION ALL SELECT 'category', category, count(*) FROM m GROUP BY category
UNION ALL SELECT 'strain', strain, count(*) FROM m WHERE strain IS NOT NULL GROUP BY strain
UNION ALL (SELECT 'brand', brand_id::text, count(*) FROM m WHERE brand_id IS NOT NULL GROUP BY brand_id ORDER BY 3 DESC, 2 LIMIT 40)
UNION ALL SELECT 'price', width_bucket(price, %(price_steps)s::integer[])::text, count(*) FROM m WHERE price IS NOT NULL GROUP BY 2
UNION ALL SELECT 'thc', width_bucket(thc, %(thc_steps)s::integer[])::text, count(*) FROM m WHERE thc IS NOT NULL GROUP BY 2
UNION ALL SELECT 'in_stock', 'yes', count(*) FROM m WHERE in_stock
UNION ALL SELECT 'special', 'yes', count(*) FROM m WHERE on_special

-- piece: sizes_of_items
UNION ALL (SELECT 'size', z, count(*) FROM (SELECT unnest(sizes) AS z FROM m) u GROUP BY z ORDER BY 3 DESC, 2 LIMIT 16)

-- piece: sizes_of_rows
-- `f` has a row for each size of an item, or several.
UNION ALL (SELECT 'size', size, count(DISTINCT item_id) FROM f WHERE size <> '' GROUP BY size ORDER BY 3 DESC, 2 LIMIT 16)
UNION ALL SELECT 'rows', NULL, count(*) FROM f

-- name: facets
-- Number of items that match, in total and by facet; counted up to a limit, plus one to show that there are more.
WITH m AS MATERIALIZED (
  SELECT i.category, i.strain, i.brand_id, i.sizes, i.price, i.thc, i.in_stock > 0 AS in_stock, i.on_special
    FROM storefront_items i
   WHERE i.stores > 0 {text_filter} {item_filter}
   LIMIT %(most)s + 1
)
{facet_counts}
{sizes_of_items};

-- name: facets_sampled
-- The same from a sample of the table's pages, for a filter that matches many.
WITH m AS MATERIALIZED (
  SELECT i.category, i.strain, i.brand_id, i.sizes, i.price, i.thc, i.in_stock > 0 AS in_stock, i.on_special
    FROM storefront_items i TABLESAMPLE SYSTEM (%(percent)s) REPEATABLE (1)
   WHERE i.stores > 0 {text_filter} {item_filter}
)
{facet_counts}
{sizes_of_items};

-- name: facets_of_sizes
-- The same for a filter of sizes, prices or stock.
WITH f AS MATERIALIZED (
  SELECT i.id AS item_id, i.category, i.strain, i.brand_id, i.thc, z.size, CASE WHEN %(special)s THEN z.special_price ELSE z.price END AS price,
         z.in_stock > 0 AS in_stock, z.special_price IS NOT NULL AS on_special
    FROM storefront_item_sizes z JOIN storefront_items i ON i.id = z.item_id
   WHERE i.stores > 0 {text_filter} {item_filter} {size_filter}
   LIMIT %(most)s + 1
), m AS MATERIALIZED (
  SELECT f.item_id, min(f.category) AS category, min(f.strain) AS strain, min(f.brand_id) AS brand_id, min(f.price) AS price, max(f.thc) AS thc,
         bool_or(f.in_stock) AS in_stock, bool_or(f.on_special) AS on_special
    FROM f GROUP BY f.item_id
)
{facet_counts}
{sizes_of_rows};

-- name: facets_of_sizes_sampled
WITH f AS MATERIALIZED (
  SELECT i.id AS item_id, i.category, i.strain, i.brand_id, i.thc, z.size, CASE WHEN %(special)s THEN z.special_price ELSE z.price END AS price,
         z.in_stock > 0 AS in_stock, z.special_price IS NOT NULL AS on_special
    FROM storefront_items i TABLESAMPLE SYSTEM (%(percent)s) REPEATABLE (1) JOIN storefront_item_sizes z ON z.item_id = i.id
   WHERE i.stores > 0 {text_filter} {item_filter} {size_filter}
), m AS MATERIALIZED (
  SELECT f.item_id, min(f.category) AS category, min(f.strain) AS strain, min(f.brand_id) AS brand_id, min(f.price) AS price, max(f.thc) AS thc,
         bool_or(f.in_stock) AS in_stock, bool_or(f.on_special) AS on_special
    FROM f GROUP BY f.item_id
)
{facet_counts}
{sizes_of_rows};

-- name: facets_nearby
-- The same for some stores, with their prices and stock.
WITH f AS MATERIALIZED (
  SELECT o.item_id, o.category, o.strain, o.brand_id, o.size, o.price, o.thc, o.in_stock, o.regular IS NOT NULL AND o.in_stock IS NOT false AS on_special
    FROM storefront_offers o
   WHERE o.store_id = ANY (%(stores)s::integer[])
     AND (%(ids)s::bigint[] IS NULL OR o.item_id = ANY (%(ids)s))
     AND (%(broad)s::text IS NULL OR (SELECT w.words @@ %(broad)s::text::tsquery FROM storefront_item_words w WHERE w.item_id = o.item_id))
     {offer_filter}
), m AS MATERIALIZED (
  SELECT f.item_id, min(f.category) AS category, min(f.strain) AS strain, min(f.brand_id) AS brand_id, min(f.price) AS price, max(f.thc) AS thc,
         bool_or(f.in_stock) AS in_stock, bool_or(f.on_special) AS on_special
    FROM f GROUP BY f.item_id
)
{facet_counts}
{sizes_of_rows};

-- name: find
SELECT i.id, {key} AS key
  FROM storefront_items i
 WHERE i.stores > 0 {text_filter} {item_filter} {any_size_filter}
   AND (%(after_id)s::bigint IS NULL OR ({key}, i.id) > (%(after_key)s::integer, %(after_id)s))
 ORDER BY 2, 1 LIMIT %(limit)s;

-- name: find_few
-- The same for few matches: all of them are sorted, instead of a search along an index.
SELECT i.id, {key} AS key
  FROM (SELECT * FROM storefront_items i WHERE i.stores > 0 {text_filter} {item_filter} {any_size_filter} OFFSET 0) i
 WHERE (%(after_id)s::bigint IS NULL OR ({key}, i.id) > (%(after_key)s::integer, %(after_id)s))
 ORDER BY 2, 1 LIMIT %(limit)s;

-- name: find_of_sizes
-- The same for a filter of sizes, or of several values of one offer: items are sorted by the sizes that it admits.
SELECT i.id, {key} AS key
  FROM (SELECT i.id, i.category, i.popularity, i.thc, i.first_seen, f.price, f.per_gram, f.per_dose
          FROM (SELECT z.item_id, min(CASE WHEN %(special)s THEN z.special_price ELSE z.price END) AS price,
                       min(CASE WHEN %(special)s THEN z.special_per_gram ELSE z.per_gram END) AS per_gram,
                       min(CASE WHEN %(special)s THEN z.special_per_dose ELSE z.per_dose END) AS per_dose
                  FROM storefront_item_sizes z
                 WHERE (%(ids)s::bigint[] IS NULL OR z.item_id = ANY (%(ids)s)) {size_filter}
                 GROUP BY z.item_id) f
          JOIN storefront_items i ON i.id = f.item_id
         WHERE i.stores > 0 {text_filter} {item_filter} OFFSET 0) i
 WHERE (%(after_id)s::bigint IS NULL OR ({key}, i.id) > (%(after_key)s::integer, %(after_id)s))
 ORDER BY 2, 1 LIMIT %(limit)s;

-- name: find_nearby
-- Items of some stores; `meters` are the distances of the stores.
SELECT i.id, CASE WHEN %(order)s = 'distance' THEN i.meters ELSE {key} END AS key
  FROM (
  SELECT x.*, CASE WHEN x.price IS NULL THEN -2000 WHEN x.category IN ('accessory', 'apparel') THEN -1000 ELSE 0 END + least(x.selling, 900) AS popularity
    FROM (
  SELECT o.item_id AS id, min(o.category) AS category, min(n.meters) AS meters, count(DISTINCT o.location_key) FILTER (WHERE o.in_stock IS NOT false)::integer AS selling,
         coalesce(min(o.price) FILTER (WHERE o.in_stock IS NOT false AND o.price >= 10), min(o.price) FILTER (WHERE o.price >= 10)) AS price,
         coalesce(min(o.per_gram) FILTER (WHERE o.in_stock IS NOT false), min(o.per_gram)) AS per_gram,
         coalesce(min(o.per_dose) FILTER (WHERE o.in_stock IS NOT false), min(o.per_dose)) AS per_dose,
         max(o.thc) AS thc, min(o.first_seen) AS first_seen
    FROM storefront_offers o
    JOIN unnest(%(stores)s::integer[], %(meters)s::integer[]) n(store_id, meters) ON n.store_id = o.store_id
   WHERE o.store_id = ANY (%(stores)s::integer[])
     AND (%(ids)s::bigint[] IS NULL OR o.item_id = ANY (%(ids)s))
     AND (%(broad)s::text IS NULL OR (SELECT w.words @@ %(broad)s::text::tsquery FROM storefront_item_words w WHERE w.item_id = o.item_id))
     {offer_filter}
   GROUP BY o.item_id) x) i
 WHERE %(after_id)s::bigint IS NULL OR (CASE WHEN %(order)s = 'distance' THEN i.meters ELSE {key} END, i.id) > (%(after_key)s::integer, %(after_id)s)
 ORDER BY 2, 1 LIMIT %(limit)s;

-- piece: shown_first
-- Of the offers of an item the one that a card shows: what can be bought at a real price, then the cheapest.
(o.in_stock IS false OR coalesce(o.price, 10) < 10), CASE WHEN %(order)s = 'per_gram' THEN coalesce(o.per_gram, 1000000000 + o.per_dose, 2147483647) END, o.price, o.product_id, o.size

-- name: item_cards
-- Items as lists show them, each with one offer: the best that the filter admits, at `stores` if they are given. `stores` of a card have its size.
SELECT i.id, i.name, b.name AS brand, b.slug AS brand_slug, i.category, i.subcategory, i.strain, i.sizes, h.stores, h.in_stock, o.product_id,
       o.store_id, d.name AS store, d.city, d.state, o.price, nullif(o.size, '') AS size, o.from_name, {saved_price}, o.previous_price, o.per_gram, o.per_dose,
       o.in_stock AS best_in_stock, o.changed_at, p.thc_lo, p.thc_hi, p.thc_unit, p.price_rec IS NULL AND p.price_med IS NOT NULL AS medical,
       coalesce(p.local_image_path, other.path) AS picture, d.last_crawled_at AS seen_at, %(stores)s::integer[] IS NOT NULL AS nearby
  FROM unnest(%(ids)s::bigint[]) WITH ORDINALITY w(id, place)
  JOIN storefront_items i ON i.id = w.id
 CROSS JOIN LATERAL (
   (SELECT 0 AS place, o.* FROM storefront_offers o
     WHERE o.item_id = i.id AND (%(stores)s::integer[] IS NULL OR o.store_id = ANY (%(stores)s)) {price_filter}
       AND (%(dropped_since)s::timestamptz IS NULL OR (o.previous_price IS NOT NULL AND o.changed_at > %(dropped_since)s))
     ORDER BY {shown_first} LIMIT 1)
   UNION ALL
   (SELECT 1, o.* FROM storefront_offers o
     WHERE o.item_id = i.id AND (%(stores)s::integer[] IS NULL OR o.store_id = ANY (%(stores)s)) ORDER BY {shown_first} LIMIT 1)
   ORDER BY place LIMIT 1) o
 -- While stores wait to be indexed, the size of an offer may be new: then the offer counts alone.
 CROSS JOIN LATERAL (
   SELECT coalesce(max(z.stores), 1)::bigint AS stores, coalesce(max(z.in_stock), o.in_stock::integer, 0)::bigint AS in_stock
     FROM storefront_item_sizes z
    WHERE z.item_id = i.id AND z.size = o.size HAVING %(stores)s::integer[] IS NULL
   UNION ALL
   SELECT count(DISTINCT n.location_key), count(DISTINCT n.location_key) FILTER (WHERE n.in_stock) FROM storefront_offers n
    WHERE n.item_id = i.id AND n.store_id = ANY (%(stores)s::integer[]) AND n.size = o.size HAVING %(stores)s::integer[] IS NOT NULL) h
  {sale_of_size}
  LEFT JOIN brands b ON b.id = i.brand_id
  JOIN catalog_products p ON p.id = o.product_id
  JOIN dispensaries d ON d.id = o.store_id
  LEFT JOIN LATERAL (
    SELECT q.local_image_path AS path
      FROM (SELECT f.product_id FROM storefront_offers f WHERE f.item_id = i.id LIMIT 20) few JOIN catalog_products q ON q.id = few.product_id
     WHERE p.local_image_path IS NULL AND q.local_image_path IS NOT NULL LIMIT 1) other ON true
 ORDER BY w.place;

-- name: drops
-- Items with a recent price drop, largest share first; each item once.
SELECT id FROM (
  SELECT DISTINCT ON (f.item_id) f.item_id AS id, (f.previous_price - f.price)::double precision / f.previous_price AS share
    FROM (SELECT o.item_id, o.previous_price, o.price FROM storefront_offers o
           WHERE o.previous_price IS NOT NULL AND o.in_stock IS NOT false AND o.changed_at > %(since)s
             AND (%(stores)s::integer[] IS NULL OR o.store_id = ANY (%(stores)s))
           ORDER BY o.changed_at DESC LIMIT 2000) f
   ORDER BY f.item_id, share DESC) x
 ORDER BY share DESC, id LIMIT %(limit)s;

-- name: item
SELECT i.id, i.name, b.name AS brand, b.slug AS brand_slug, i.brand_id, i.category, i.subcategory, i.strain, i.sizes, i.stores, i.in_stock, i.price,
       i.per_gram, i.thc, i.on_special, i.changed_at
  FROM storefront_items i LEFT JOIN brands b ON b.id = i.brand_id WHERE i.id = %(id)s;

-- name: moved_to
-- Where a number leads: to the product that it was merged into, or, if no listing has it now, to the one that most of them went to.
SELECT CASE WHEN c.merged_into IS NOT NULL THEN live_canonical_product(c.id)
            ELSE (SELECT live_canonical_product(e.to_id) FROM match_events e
                   WHERE e.from_id = c.id AND NOT EXISTS (SELECT FROM product_matches m WHERE m.canonical_product_id = c.id)
                   ORDER BY e.listings DESC, e.id DESC LIMIT 1) END AS id
  FROM canonical_products c WHERE c.id = %(id)s;

-- name: item_sizes
-- In which sizes locations offer an item, and from which price; a null size is that of options without one. Of several menus of a location
-- that list a size, the price of the freshest one counts.
SELECT nullif(size, '') AS size, count(*) AS stores, min(price) AS price, (array_agg(state ORDER BY price, store_id))[1] AS state,
       bool_and(from_name) AS from_name
  FROM (SELECT DISTINCT ON (o.location_key, o.size) o.size, min(o.price) FILTER (WHERE o.in_stock IS NOT false) AS price, d.state, o.store_id,
               bool_and(o.from_name) AS from_name
          FROM storefront_offers o JOIN storefront_stores s ON s.dispensary_id = o.store_id JOIN dispensaries d ON d.id = o.store_id
         WHERE o.item_id = %(id)s
         GROUP BY o.location_key, o.size, s.crawled_at, o.store_id, d.state
         ORDER BY o.location_key, o.size, s.crawled_at DESC, o.store_id DESC) f
 GROUP BY size;

-- name: offers
-- Listings of an item: of each size those of the first locations, each with all its menus. `meters` is null without a location.
WITH ranked AS (
  SELECT o.location_key, row_number() OVER (
           PARTITION BY o.size
               ORDER BY (o.in_stock IS false), CASE WHEN %(by_distance)s THEN n.meters END NULLS LAST, o.price NULLS LAST, o.product_id) AS place
    FROM storefront_offers o
    LEFT JOIN unnest(%(stores)s::integer[], %(meters)s::integer[]) n(store_id, meters) ON n.store_id = o.store_id
   WHERE o.item_id = %(id)s AND (%(size)s::text IS NULL OR o.size = %(size)s)
), picked AS (
  SELECT location_key FROM ranked WHERE place <= %(per_size)s GROUP BY location_key ORDER BY min(place), 1 LIMIT %(limit)s
), listed AS (
  SELECT o.product_id, o.store_id, o.location_key, bool_and(o.in_stock IS false) AS out, max(o.changed_at) AS changed_at,
         jsonb_object_agg(o.size, o.previous_price) FILTER (WHERE o.previous_price IS NOT NULL) AS previous_prices,
         coalesce(min(o.price) FILTER (WHERE o.in_stock IS NOT false), min(o.price)) AS price
    FROM storefront_offers o WHERE o.item_id = %(id)s AND o.location_key IN (SELECT location_key FROM picked)
   GROUP BY o.product_id, o.store_id, o.location_key
)
SELECT o.product_id, o.store_id, o.location_key, d.name AS store, d.platform, d.city, d.state, d.timezone, o.price, o.previous_prices, p.is_in_stock AS in_stock, o.changed_at,
       p.name AS written, p.category_canon AS category, p.variants, p.thc_lo, p.thc_hi, p.thc_unit, p.cbd_lo, p.cbd_hi, p.cbd_unit, p.cannabinoids,
       p.terpenes, p.batch, p.quantity_sold, p.quantity, p.quantity_capped, p.specials, p.description,
       (SELECT b.description FROM brand_descriptions b WHERE b.hash = p.brand_description_hash LIMIT 1) AS brand_description, p.local_image_path,
       p.price_rec IS NULL AND p.price_med IS NOT NULL AS medical, d.last_crawled_at AS seen_at, d.menu_url, n.meters, t.per_gram AS usual_per_gram,
       p.extra ->> 'menu_url' AS item_url, p.extra ->> 'slug' AS item_slug, d.address, d.zipcode, d.latitude, d.longitude, {opening_hours}
  FROM listed o
  JOIN catalog_products p ON p.id = o.product_id
  JOIN dispensaries d ON d.id = o.store_id
  LEFT JOIN unnest(%(stores)s::integer[], %(meters)s::integer[]) n(store_id, meters) ON n.store_id = o.store_id
  LEFT JOIN storefront_totals t ON t.kind = 'category' AND t.name = p.category_canon
 ORDER BY o.out, CASE WHEN %(by_distance)s THEN n.meters END NULLS LAST, o.price NULLS LAST, o.product_id
 LIMIT 3 * %(limit)s;

-- name: nearby_stores
-- Stores around a point, nearest first. The box limits the exact computation to a few of them. `zipcode`: where the position is the middle of its area.
SELECT x.store_id, x.location_key, x.meters, x.offers, CASE WHEN num_nulls(d.latitude, d.longitude) > 0 THEN d.zipcode END AS zipcode FROM (
  SELECT s.dispensary_id AS store_id, s.location_key, s.offers,
         distance_meters(s.latitude, s.longitude, %(lat)s::double precision, %(lon)s::double precision) AS meters
    FROM storefront_stores s
   WHERE s.latitude BETWEEN %(lat)s::double precision - %(lat_span)s::double precision AND %(lat)s::double precision + %(lat_span)s::double precision
     AND s.longitude BETWEEN %(lon)s::double precision - %(lon_span)s::double precision AND %(lon)s::double precision + %(lon_span)s::double precision) x
  JOIN dispensaries d ON d.id = x.store_id
 WHERE x.meters <= %(meters)s ORDER BY x.meters, x.store_id LIMIT %(limit)s;

-- name: matching
-- Items that the words match.
SELECT item_id FROM storefront_item_words WHERE words @@ %(words)s::text::tsquery LIMIT %(limit)s;

-- name: cities
-- Of these names in lower case those that are the city of a listed store, with the state that has most of its stores.
SELECT DISTINCT ON (lower(d.city)) lower(d.city) AS name, d.city, d.state FROM storefront_stores s JOIN dispensaries d ON d.id = s.dispensary_id
 WHERE lower(d.city) = ANY (%(names)s::text[]) AND d.state IS NOT NULL
 GROUP BY d.city, d.state ORDER BY lower(d.city), count(*) DESC, d.state;

-- name: stores_named
-- Stores with all of the words in their names.
SELECT d.id, d.name, d.city, d.state FROM storefront_stores s JOIN dispensaries d ON d.id = s.dispensary_id
 WHERE {freshest_menu} AND to_tsvector('simple', replace(d.name, '-', ' ')) @@ array_to_string(%(words)s::text[], ' & ')::tsquery
 ORDER BY s.offers DESC, d.id LIMIT %(limit)s;

-- name: brands_by_id
SELECT id, slug, name FROM brands WHERE id = ANY (%(ids)s::integer[]);

-- name: brands_by_slug
-- Under the slugs that were asked for, also of brands that were merged since.
SELECT b.id, f.slug, b.name FROM brands f JOIN brands b ON b.id = live_brand(f.id) WHERE f.slug = ANY (%(slugs)s::text[]);

-- name: brand
-- The collation is that of the index of brand images; with another one every image would be read.
SELECT b.id, b.slug, b.name, u.path AS logo FROM brands b
  LEFT JOIN image_references u ON u.brand = left(b.slug, 80) COLLATE "default" AND u.status = 'stored'
 WHERE b.id = live_brand(coalesce((SELECT id FROM brands WHERE slug = %(slug)s), (SELECT brand_id FROM brand_aliases WHERE alias = %(alias)s)));

-- name: brand_totals
-- `state` is that of a store that asks the lowest price; while prices wait to be summed up, perhaps that of another store.
SELECT t.*, (SELECT d.state FROM storefront_items i JOIN storefront_offers o ON o.item_id = i.id JOIN dispensaries d ON d.id = o.store_id
              WHERE i.brand_id = %(id)s AND i.stores > 0 AND i.price = t.price ORDER BY o.price IS DISTINCT FROM i.price, d.state LIMIT 1) AS state
  FROM (SELECT count(*) AS items, count(*) FILTER (WHERE in_stock > 0) AS in_stock, min(price) AS price FROM storefront_items
         WHERE brand_id = %(id)s AND stores > 0) t;

-- name: brand_categories
SELECT category, count(*) AS items FROM storefront_items WHERE brand_id = %(id)s AND stores > 0 GROUP BY category ORDER BY 2 DESC, 1;

-- name: totals
SELECT t.name, coalesce(b.name, t.name) AS label, t.items, t.stores, t.price FROM storefront_totals t LEFT JOIN brands b ON t.kind = 'brand' AND b.slug = t.name
 WHERE t.kind = %(kind)s ORDER BY t.items DESC, t.name LIMIT %(limit)s;

-- name: states
-- The empty state is that of stores in none, and last.
SELECT coalesce(d.state, '') AS state, count(*) AS stores, sum(s.offers)::integer AS products
  FROM storefront_stores s JOIN dispensaries d ON d.id = s.dispensary_id WHERE {freshest_menu} GROUP BY d.state ORDER BY d.state NULLS LAST;

-- name: stores
-- Stores by distance, or by city and name after a given one.
SELECT d.id, d.name, d.address, d.city, d.state, d.zipcode, d.timezone, d.last_crawled_at AS seen_at, s.offers, d.is_recreational, d.is_medical,
       d.latitude, d.longitude, n.meters, {opening_hours}
  FROM storefront_stores s JOIN dispensaries d ON d.id = s.dispensary_id
  LEFT JOIN unnest(%(stores)s::integer[], %(meters)s::integer[]) n(store_id, meters) ON n.store_id = d.id
 WHERE {freshest_menu} AND (%(state)s::text IS NULL OR coalesce(d.state, '') = %(state)s) AND (%(stores)s::integer[] IS NULL OR n.store_id IS NOT NULL)
   AND (%(after_id)s::integer IS NULL OR (coalesce(d.city, ''), d.name, d.id) > (%(after_city)s::text, %(after_name)s::text, %(after_id)s))
 ORDER BY n.meters, coalesce(d.city, ''), d.name, d.id LIMIT %(limit)s;

-- name: store
SELECT d.id, d.name, d.address, d.city, d.state, d.country, d.zipcode, d.phone, d.timezone, d.menu_url, d.latitude, d.longitude, d.is_recreational,
       d.is_medical, d.last_crawled_at AS seen_at, s.offers, {opening_hours}
  FROM dispensaries d JOIN storefront_stores s ON s.dispensary_id = d.id WHERE d.id = %(id)s;

-- name: other_menus
-- Other menus of the location of a store.
SELECT d.id, d.name, d.platform, d.last_crawled_at AS seen_at, s.crawled_at > own.crawled_at AS fresher
  FROM storefront_stores own JOIN storefront_stores s ON s.location_key = own.location_key AND s.dispensary_id <> own.dispensary_id
  JOIN dispensaries d ON d.id = s.dispensary_id
 WHERE own.dispensary_id = %(id)s ORDER BY s.crawled_at DESC, d.id LIMIT 10;

-- name: store_categories
SELECT category, count(DISTINCT item_id) AS items FROM storefront_offers WHERE store_id = %(id)s GROUP BY category ORDER BY 2 DESC, 1;

-- name: store_menu
-- The first items of each category of one store: in stock first, then by name.
SELECT category, id FROM (
  SELECT o.category, o.item_id AS id, i.name,
         row_number() OVER (PARTITION BY o.category ORDER BY bool_or(o.in_stock IS NOT false) DESC, bool_or(o.regular IS NOT NULL) DESC, i.name, o.item_id) AS place
    FROM storefront_offers o JOIN storefront_items i ON i.id = o.item_id WHERE o.store_id = %(id)s GROUP BY o.category, o.item_id, i.name) x
 WHERE place <= %(per_category)s ORDER BY category, place;

-- name: similar
SELECT id FROM storefront_items WHERE brand_id = %(brand_id)s AND stores > 0 AND id <> %(id)s ORDER BY -popularity, id LIMIT %(limit)s;

-- name: sitemap_items
SELECT id, name, changed_at FROM storefront_items WHERE stores > 0 AND id >= %(first)s AND id < %(last)s ORDER BY id;

-- name: last_item_id
SELECT max(id) AS last FROM storefront_items;

-- name: sitemap_stores
SELECT d.id, d.name, d.last_crawled_at AS changed_at FROM storefront_stores s JOIN dispensaries d ON d.id = s.dispensary_id ORDER BY d.id;

-- name: sitemap_brands
SELECT b.slug FROM brands b WHERE EXISTS (SELECT FROM storefront_items i WHERE i.brand_id = b.id AND i.stores > 0) ORDER BY b.id LIMIT %(limit)s;
