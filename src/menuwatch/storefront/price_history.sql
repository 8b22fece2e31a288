-- Which listings the price history of a product is read from.

-- name: listings
-- Listings at visible stores, and one besides: those that are on the menu, the cheapest first, then those that left it, the latest first.
SELECT p.id AS product_id, p.dispensary_id AS store_id, s.location_key, p.name, p.category_canon AS category, p.variants
  FROM (SELECT product_id FROM storefront_offers WHERE item_id = %(id)s
        UNION SELECT product_id FROM product_matches WHERE canonical_product_id = %(id)s) m
  JOIN catalog_products p ON p.id = m.product_id
  JOIN storefront_stores s ON s.dispensary_id = p.dispensary_id
 WHERE (%(stores)s::integer[] IS NULL OR p.dispensary_id = ANY (%(stores)s) OR p.id = %(product_id)s)
   AND (p.last_seen_at IS NULL OR %(since)s::timestamptz IS NULL OR p.last_seen_at >= %(since)s)
 ORDER BY p.last_seen_at DESC NULLS FIRST, effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special) NULLS LAST, p.id
 LIMIT 1000;
