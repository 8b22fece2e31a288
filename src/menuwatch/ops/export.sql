-- What is exported, with the types that it has. The caller wraps these in a COPY that writes each column as its format needs it.
-- `since` and `until` are the span that was asked for; `part_from` and `part_until` cut it into files.

-- piece: details_of_p
p.cannabinoids, p.terpenes, p.batch ->> 'batch_id' AS batch_id, p.batch ->> 'package_tag' AS package_tag,
(p.batch ->> 'tested_on')::date AS tested_on, (p.batch ->> 'packaged_on')::date AS packaged_on,
(p.batch ->> 'expires_on')::date AS expires_on, p.batch ->> 'certificate_url' AS certificate_url, p.quantity_sold

-- piece: ids
i.canonical_product_id, i.brand_id, l.location_id

-- piece: identities_of_p
LEFT JOIN product_identities i ON i.product_id = p.id
  LEFT JOIN store_locations l ON l.dispensary_id = d.id

-- piece: chosen_menus
(%(stores)s::integer[] IS NULL OR d.id = ANY (%(stores)s))
   AND (%(states)s::text[] IS NULL OR d.state = ANY (%(states)s))
   AND (NOT %(stateless)s::boolean OR d.state IS NULL)
   AND (%(platforms)s::text[] IS NULL OR d.platform = ANY (%(platforms)s))

-- piece: every_menu
%(stores)s::integer[] IS NULL AND %(states)s::text[] IS NULL AND NOT %(stateless)s::boolean AND %(platforms)s::text[] IS NULL

-- name: products
SELECT p.id AS product_id, p.dispensary_id, d.name AS store, d.state, p.provider, p.provider_product_id, p.name, p.name_raw,
       p.brand_name, p.brand_name_raw, p.category, p.subcategory, p.strain_type, p.category_canon, p.subcategory_canon,
       p.strain_canon, p.status_raw, p.price_rec, p.price_rec_special, p.price_med, p.price_med_special, p.is_in_stock,
       p.stock_status, p.quantity, p.quantity_capped, p.thc_lo, p.thc_hi, p.thc_unit, p.cbd_lo, p.cbd_hi, p.cbd_unit,
       p.variants, {details_of_p}, p.specials, p.image_url, p.local_image_path, p.description,
       p.consecutive_misses, p.first_seen_at, p.last_seen_at, p.updated_at, p.platform_created_at, p.platform_updated_at, {ids}
  FROM store_products p JOIN dispensaries d ON d.id = p.dispensary_id
  {identities_of_p}
 WHERE (%(stores)s::integer[] IS NULL OR d.id = ANY (%(stores)s))
   AND (%(states)s::text[] IS NULL OR d.state = ANY (%(states)s))
   AND (NOT %(stateless)s::boolean OR d.state IS NULL)
   AND (%(platforms)s::text[] IS NULL OR p.provider = ANY (%(platforms)s))
   AND (%(since)s::timestamptz IS NULL OR p.updated_at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR p.updated_at < %(until)s);

-- name: snapshots
SELECT s.crawled_at, s.payload_id, s.store_product_id AS product_id, s.dispensary_id, d.name AS store, d.state, s.provider,
       s.provider_product_id, p.name, p.brand_name, p.category_canon, s.price_rec, s.price_rec_special, s.price_med,
       s.price_med_special, s.is_in_stock, s.stock_status, s.quantity, s.quantity_capped, s.thc_lo, s.thc_hi, s.thc_unit,
       s.cbd_lo, s.cbd_hi, s.cbd_unit, s.prices, s.stock, s.state_since, {ids}
  FROM store_product_snapshots s
  JOIN catalog_products p ON p.id = s.store_product_id
  JOIN dispensaries d ON d.id = s.dispensary_id
  {identities_of_p}
 WHERE (%(stores)s::integer[] IS NULL OR d.id = ANY (%(stores)s))
   AND (%(states)s::text[] IS NULL OR d.state = ANY (%(states)s))
   AND (NOT %(stateless)s::boolean OR d.state IS NULL)
   AND (%(platforms)s::text[] IS NULL OR s.provider = ANY (%(platforms)s))
   AND (%(since)s::timestamptz IS NULL OR s.crawled_at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR (s.crawled_at < %(until)s AND s.state_since < %(until)s))
   AND (%(part_from)s::timestamptz IS NULL OR s.crawled_at >= %(part_from)s)
   AND (%(part_until)s::timestamptz IS NULL OR (s.crawled_at < %(part_until)s AND s.state_since < %(part_until)s));

-- name: states
-- The states that lasted at any time of the span; a file of a month has those that began in it.
SELECT s.seen_from, s.seen_to, s.present, s.product_id, p.dispensary_id, d.name AS store, d.state, p.provider,
       p.provider_product_id, p.name, p.brand_name, p.category_canon, s.price_rec, s.price_rec_special, s.price_med,
       s.price_med_special, s.stock_status, s.quantity, s.quantity_capped, s.thc_lo, s.thc_hi, s.thc_unit, s.cbd_lo, s.cbd_hi,
       s.cbd_unit, s.prices, s.stock, {ids}
  FROM product_states s
  JOIN catalog_products p ON p.id = s.product_id
  JOIN dispensaries d ON d.id = p.dispensary_id
  {identities_of_p}
 WHERE (%(stores)s::integer[] IS NULL OR d.id = ANY (%(stores)s))
   AND (%(states)s::text[] IS NULL OR d.state = ANY (%(states)s))
   AND (NOT %(stateless)s::boolean OR d.state IS NULL)
   AND (%(platforms)s::text[] IS NULL OR p.provider = ANY (%(platforms)s))
   AND (%(since)s::timestamptz IS NULL OR s.seen_to IS NULL OR s.seen_to >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR s.seen_from < %(until)s)
   AND (%(part_from)s::timestamptz IS NULL OR s.seen_from >= %(part_from)s)
   AND (%(part_until)s::timestamptz IS NULL OR s.seen_from < %(part_until)s);

-- name: changes
SELECT c.changed_at, c.product_id, c.dispensary_id, d.name AS store, d.state, p.provider, c.provider_product_id, c.name,
       c.brand_name, p.category_canon, c.price_changed, c.stock_changed, c.present, c.price_rec_before, c.price_rec_after,
       c.price_rec_special_before, c.price_rec_special_after, c.price_med_before, c.price_med_after, c.price_med_special_before,
       c.price_med_special_after, c.stock_status_before, c.stock_status_after, c.quantity_before, c.quantity_after,
       c.prices_before, c.prices_after, c.stock_before, c.stock_after, {ids}
  FROM product_changes c
  JOIN catalog_products p ON p.id = c.product_id
  JOIN dispensaries d ON d.id = c.dispensary_id
  {identities_of_p}
 WHERE (%(stores)s::integer[] IS NULL OR d.id = ANY (%(stores)s))
   AND (%(states)s::text[] IS NULL OR d.state = ANY (%(states)s))
   AND (NOT %(stateless)s::boolean OR d.state IS NULL)
   AND (%(platforms)s::text[] IS NULL OR p.provider = ANY (%(platforms)s))
   AND (%(since)s::timestamptz IS NULL OR c.changed_at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR c.changed_at < %(until)s)
   AND (%(part_from)s::timestamptz IS NULL OR c.changed_at >= %(part_from)s)
   AND (%(part_until)s::timestamptz IS NULL OR c.changed_at < %(part_until)s);

-- name: details
-- Batches, lab values and sold counts that were current at any time of the span; a file of a month has those that began in it.
SELECT p.seen_from, p.ended_at, p.product_id, c.dispensary_id, d.name AS store, d.state, c.provider, c.provider_product_id, c.name,
       c.brand_name, c.category_canon, {details_of_p}, {ids}
  FROM product_details p
  JOIN catalog_products c ON c.id = p.product_id
  JOIN dispensaries d ON d.id = c.dispensary_id
  LEFT JOIN product_identities i ON i.product_id = c.id
  LEFT JOIN store_locations l ON l.dispensary_id = d.id
 WHERE (%(stores)s::integer[] IS NULL OR d.id = ANY (%(stores)s))
   AND (%(states)s::text[] IS NULL OR d.state = ANY (%(states)s))
   AND (NOT %(stateless)s::boolean OR d.state IS NULL)
   AND (%(platforms)s::text[] IS NULL OR c.provider = ANY (%(platforms)s))
   AND (%(since)s::timestamptz IS NULL OR p.ended_at IS NULL OR p.ended_at > %(since)s)
   AND (%(until)s::timestamptz IS NULL OR p.seen_from < %(until)s)
   AND (%(part_from)s::timestamptz IS NULL OR p.seen_from >= %(part_from)s)
   AND (%(part_until)s::timestamptz IS NULL OR p.seen_from < %(part_until)s);

-- name: canonical_products
-- Merged ones as well: `merged_into` tells an older file's number what became of it. Of chosen stores: what they list.
SELECT c.id AS canonical_product_id, live_brand(c.brand_id) AS brand_id, c.name, c.category, c.form, c.strain, c.listings, c.stores,
       live_canonical_product(c.merged_into) AS merged_into, c.created_at, c.changed_at
  FROM canonical_products c
 WHERE (({every_menu})
        OR c.id IN (SELECT m.canonical_product_id FROM product_matches m JOIN dispensaries d ON d.id = m.dispensary_id WHERE {chosen_menus}))
   AND (%(since)s::timestamptz IS NULL OR c.changed_at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR c.changed_at < %(until)s);

-- name: brands
SELECT b.id AS brand_id, b.slug, b.name, live_brand(b.merged_into) AS merged_into, b.created_at
  FROM brands b
 WHERE (({every_menu})
        OR b.id IN (SELECT live_brand(c.brand_id)
                      FROM product_matches m JOIN dispensaries d ON d.id = m.dispensary_id JOIN canonical_products c ON c.id = m.canonical_product_id
                     WHERE {chosen_menus}))
   AND (%(since)s::timestamptz IS NULL OR b.created_at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR b.created_at < %(until)s);

-- name: locations
SELECT l.id AS location_id, l.name, l.chain, l.address, l.city, l.state, l.zipcode, l.latitude::numeric AS latitude,
       l.longitude::numeric AS longitude, l.phone, live_location(l.merged_into) AS merged_into, l.created_at, l.changed_at
  FROM locations l
 WHERE (({every_menu})
        OR l.id IN (SELECT k.location_id FROM store_locations k JOIN dispensaries d ON d.id = k.dispensary_id WHERE {chosen_menus}))
   AND (%(since)s::timestamptz IS NULL OR l.changed_at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR l.changed_at < %(until)s);

-- name: product_matches
-- Every listing that was taken in; `confidence` and `reasons` are of the link by which it joined its product.
SELECT m.product_id, m.dispensary_id, i.canonical_product_id, i.brand_id, l.location_id, round(s.confidence::numeric, 4) AS confidence,
       s.reasons, to_json(m.sizes) AS sizes, m.matched_at
  FROM product_matches m
  JOIN dispensaries d ON d.id = m.dispensary_id
  JOIN match_signatures s ON s.id = m.signature_id
  LEFT JOIN product_identities i ON i.product_id = m.product_id
  LEFT JOIN store_locations l ON l.dispensary_id = d.id
 WHERE {chosen_menus}
   AND (%(since)s::timestamptz IS NULL OR m.matched_at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR m.matched_at < %(until)s);

-- name: match_events
-- They are about no store: of chosen stores, those of what these list now.
SELECT e.id, e.at, e.kind, e.from_id AS from_canonical_product_id, f.name AS from_name, e.to_id AS canonical_product_id, t.name, e.listings, e.cause
  FROM match_events e JOIN canonical_products f ON f.id = e.from_id JOIN canonical_products t ON t.id = e.to_id
 WHERE (({every_menu})
        OR e.to_id IN (SELECT m.canonical_product_id FROM product_matches m JOIN dispensaries d ON d.id = m.dispensary_id WHERE {chosen_menus}))
   AND (%(since)s::timestamptz IS NULL OR e.at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR e.at < %(until)s);

-- name: states_of_stores
-- The states that the stores of an export lie in, for a file each; null where that is not known.
SELECT DISTINCT d.state FROM dispensaries d
 WHERE (%(stores)s::integer[] IS NULL OR d.id = ANY (%(stores)s))
   AND (%(states)s::text[] IS NULL OR d.state = ANY (%(states)s))
   AND EXISTS (SELECT FROM store_crawls c WHERE c.dispensary_id = d.id)
 ORDER BY 1;

-- name: months_of_crawls
-- The months, in UTC, in which the stores of an export were crawled: nothing changes in any other.
SELECT DISTINCT date_trunc('month', c.crawled_at, 'UTC') AS month
  FROM store_crawls c JOIN dispensaries d ON d.id = c.dispensary_id
 WHERE (%(stores)s::integer[] IS NULL OR d.id = ANY (%(stores)s))
   AND (%(states)s::text[] IS NULL OR d.state = ANY (%(states)s))
   AND (%(until)s::timestamptz IS NULL OR c.crawled_at < %(until)s)
 ORDER BY 1;

-- name: known_stores
SELECT id FROM dispensaries WHERE id = ANY (%(ids)s::integer[]);
