-- Canonical products with their listings.

-- name: get_product
SELECT c.id, c.name, c.brand_id, b.name AS brand, c.category, c.form, c.strain, c.listings, c.stores, c.merged_into, c.created_at, c.changed_at,
       (SELECT coalesce(json_agg(r.id ORDER BY r.id), '[]') FROM canonical_products r WHERE r.merged_into = c.id) AS merged,
       (SELECT coalesce(json_agg(z.size ORDER BY z.size), '[]') FROM canonical_sizes z WHERE z.canonical_product_id = c.id) AS sizes
  FROM canonical_products c LEFT JOIN brands b ON b.id = c.brand_id
 WHERE c.id = %(id)s;

-- name: list_listings
-- Those on a menu first, the cheapest first; a listing without a price comes last. `other_product_id` is a listing that it would be
-- split from: of the signature that it joined by, else of another signature.
SELECT x.*,
       (SELECT o.product_id FROM product_matches o JOIN match_signatures os ON os.id = o.signature_id
         WHERE o.canonical_product_id = %(id)s AND o.signature_id <> x.signature_id
         ORDER BY o.signature_id IS DISTINCT FROM x.linked_to, o.product_id LIMIT 1) AS other_product_id
  FROM (SELECT p.id AS product_id, d.id AS store_id, d.name AS store, p.provider AS platform, p.name, p.brand_name AS brand, currency_of(d.state) AS currency,
               effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special) AS price, p.price_rec, p.price_med, to_json(m.sizes) AS sizes,
               p.stock_status, p.last_seen_at IS NULL AS on_menu, p.image_url, p.local_image_path, m.signature_id, s.linked_to, s.confidence,
               coalesce(s.reasons, '[]') AS reasons,
               coalesce(effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special), 'Infinity') AS key
          FROM product_matches m
          JOIN match_signatures s ON s.id = m.signature_id
          JOIN catalog_products p ON p.id = m.product_id
          LEFT JOIN dispensaries d ON d.id = p.dispensary_id
         WHERE m.canonical_product_id = %(id)s AND (%(but)s::bigint IS NULL OR p.id <> %(but)s)) x
 WHERE (%(after_id)s::bigint IS NULL OR (NOT x.on_menu, x.key, x.product_id) > (NOT %(after_on_menu)s::boolean, %(after_key)s::numeric, %(after_id)s))
 ORDER BY NOT x.on_menu, x.key, x.product_id LIMIT %(limit)s;

-- name: list_events
SELECT id, at, kind, from_id, to_id, listings, cause FROM match_events
 WHERE (from_id = %(id)s OR to_id = %(id)s) AND (%(after)s::bigint IS NULL OR id < %(after)s) ORDER BY id DESC LIMIT %(limit)s;

-- name: canonical_of
SELECT canonical_product_id FROM product_matches WHERE product_id = %(id)s;
