-- Listings of canonical products, for their lowest prices.

-- name: listings
-- All of them, also those that left the menu.
SELECT m.canonical_product_id, p.id AS product_id, p.dispensary_id, d.name AS store, currency_of(d.state) AS currency, p.variants
  FROM product_matches m
  JOIN catalog_products p ON p.id = m.product_id
  JOIN dispensaries d ON d.id = p.dispensary_id
 WHERE m.canonical_product_id = ANY (%(ids)s::bigint[]) AND (%(state)s::text IS NULL OR d.state = %(state)s)
 ORDER BY p.id;
