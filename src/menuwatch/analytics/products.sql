-- Canonical products with what stores ask for them now.

-- piece: of_stores
(%(states)s::text[] IS NULL OR d.state = ANY (%(states)s))
AND (%(meters)s::double precision IS NULL
     OR distance_meters(%(latitude)s::double precision, %(longitude)s::double precision, d.latitude, d.longitude) <= %(meters)s)

-- name: list_products
-- Those in the most stores first.
SELECT c.id, c.name, n.brand_id, b.name AS brand, c.category, c.form, c.strain, c.listings, c.stores
  FROM canonical_products c
  JOIN canonical_product_brands n ON n.canonical_product_id = c.id
  LEFT JOIN brands b ON b.id = n.brand_id
 WHERE c.merged_into IS NULL AND c.listings > 0
   AND (%(category)s::text IS NULL OR c.category = %(category)s)
   AND (%(product)s::bigint IS NULL OR c.id = live_canonical_product(%(product)s))
   AND (%(brand_id)s::integer IS NULL OR c.brand_id = ANY (merged_brands(ARRAY[%(brand_id)s])))
   AND (%(q)s::text IS NULL OR c.name ILIKE %(q)s OR b.name ILIKE %(q)s OR b.name || ' ' || c.name ILIKE %(q)s)
   AND (%(updated_since)s::timestamptz IS NULL OR c.changed_at >= %(updated_since)s)
   AND (%(anywhere)s::boolean
        OR EXISTS (SELECT FROM product_matches m JOIN catalog_products p ON p.id = m.product_id JOIN dispensaries d ON d.id = p.dispensary_id
                    WHERE m.canonical_product_id = c.id AND p.last_seen_at IS NULL AND {of_stores}))
   AND (%(after_stores)s::integer IS NULL OR c.stores <= %(after_stores)s)
   AND (%(after_stores)s IS NULL OR (-c.stores, c.id) > (-%(after_stores)s, %(after_id)s::bigint))
 ORDER BY c.stores DESC, c.id LIMIT %(limit)s;

-- name: get_product
SELECT c.id, c.name, n.brand_id, b.name AS brand, c.category, c.form, c.strain, c.listings, c.stores
  FROM canonical_products c
  JOIN canonical_product_brands n ON n.canonical_product_id = c.id
  LEFT JOIN brands b ON b.id = n.brand_id
 WHERE c.id = live_canonical_product(%(id)s::bigint);

-- name: offers
-- Options that can be bought, of the stores' last crawls.
SELECT m.canonical_product_id, p.id AS product_id, p.dispensary_id, d.name AS store, d.state, currency_of(d.state) AS currency, p.provider, l.location_id, p.name, v.option, v.weight_g,
       v.content_mg, v.pieces, effective_price(v.price_rec, v.special_rec, v.price_med, v.special_med) AS price, d.last_crawled_at AS crawled_at
  FROM product_matches m
  JOIN catalog_products p ON p.id = m.product_id
  JOIN dispensaries d ON d.id = p.dispensary_id
  LEFT JOIN store_locations l ON l.dispensary_id = d.id
 CROSS JOIN LATERAL jsonb_to_recordset(p.variants) v(option text, stock_status text, weight_g numeric, content_mg numeric, pieces integer,
       price_rec numeric, special_rec numeric, price_med numeric, special_med numeric)
 WHERE m.canonical_product_id = ANY (%(ids)s::bigint[]) AND p.last_seen_at IS NULL AND d.last_crawled_at IS NOT NULL AND p.stock_status <> 'oos'
   AND v.stock_status IS DISTINCT FROM 'oos' AND {of_stores}
 ORDER BY price, d.last_crawled_at DESC, p.id;
