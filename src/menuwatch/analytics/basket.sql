-- Offers of what a basket asks for, at stores near a place.

-- name: stores_near
-- Stores with a menu, the nearest first. `place` is the location, or else the store: a shop with menus on two platforms is one place.
SELECT d.id AS dispensary_id, d.name AS store, d.platform, d.city, d.state, k.location_id, coalesce(k.location_id, -d.id) AS place, m.meters,
       currency_of(d.state) AS currency, d.last_crawled_at AS crawled_at,
       now() - d.last_crawled_at > 2 * d.crawl_interval_hours * interval '1 hour' AS is_stale
  FROM dispensaries d
  LEFT JOIN store_locations k ON k.dispensary_id = d.id
 CROSS JOIN LATERAL (SELECT distance_meters(%(latitude)s::double precision, %(longitude)s::double precision, d.latitude, d.longitude) AS meters) m
 WHERE d.last_crawled_at IS NOT NULL
   AND d.latitude BETWEEN %(latitude)s - %(meters)s::double precision / 111000 AND %(latitude)s + %(meters)s / 111000
   AND m.meters <= %(meters)s
 ORDER BY m.meters, d.id;

-- name: products
-- The requested products, merged ones as what they were merged into.
SELECT n.id AS requested_id, c.id, c.name, b.name AS brand, c.category
  FROM unnest(%(ids)s::bigint[]) n(id)
  JOIN canonical_products c ON c.id = live_canonical_product(n.id)
  LEFT JOIN brands b ON b.id = live_brand(c.brand_id);

-- piece: offer
p.id AS product_id, p.dispensary_id, p.name, v.option, v.weight_g, v.content_mg, v.pieces,
       v.price_rec IS NULL AND v.special_rec IS NULL AS medical, effective_price(v.price_rec, v.special_rec, v.price_med, v.special_med) AS price

-- piece: options
CROSS JOIN LATERAL jsonb_to_recordset(p.variants) v(option text, stock_status text, weight_g numeric, content_mg numeric, pieces integer,
       price_rec numeric, special_rec numeric, price_med numeric, special_med numeric)

-- piece: on_offer
p.last_seen_at IS NULL AND p.stock_status <> 'oos' AND v.stock_status IS DISTINCT FROM 'oos'
   AND effective_price(v.price_rec, v.special_rec, v.price_med, v.special_med) > 0

-- name: offers_of_products
SELECT m.canonical_product_id AS canonical_product_id, NULL AS category, {offer}
  FROM product_matches m
  JOIN catalog_products p ON p.id = m.product_id
 {options}
 WHERE m.canonical_product_id = ANY (%(ids)s::bigint[]) AND m.dispensary_id = ANY (%(stores)s::integer[]) AND {on_offer};

-- name: offers_of_categories
SELECT m.canonical_product_id, p.category_canon AS category, {offer}
  FROM catalog_products p
  LEFT JOIN product_matches m ON m.product_id = p.id
 {options}
 WHERE p.dispensary_id = ANY (%(stores)s::integer[]) AND p.category_canon = ANY (%(categories)s::text[]) AND {on_offer};
