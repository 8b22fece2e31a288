-- Pairs that a person should judge.

-- piece: doubt
((0.5 - abs(r.confidence - 0.5)) * ln(1 + r.impact))

-- piece: from_reviews
-- Pairs that a filter selects. One that was corrected is no longer asked for, also before the engine has applied the correction; one
-- whose listings are gone is left out.
FROM match_reviews r
JOIN match_signatures sa ON sa.id = r.a
JOIN match_signatures sb ON sb.id = r.b
WHERE (r.skipped_at IS NOT NULL) = %(skipped)s::boolean
  AND NOT EXISTS (SELECT FROM match_corrections c
                   WHERE c.withdrawn_at IS NULL AND c.a_key = least(sa.key, sb.key) AND c.b_key = greatest(sa.key, sb.key))
  AND EXISTS (SELECT FROM product_matches m JOIN catalog_products p ON p.id = m.product_id WHERE m.signature_id = r.a)
  AND EXISTS (SELECT FROM product_matches m JOIN catalog_products p ON p.id = m.product_id WHERE m.signature_id = r.b)
  AND (%(together)s::boolean IS NULL OR r.together = %(together)s)
  AND (%(min_impact)s::integer IS NULL OR r.impact >= %(min_impact)s)
  AND (%(category)s::text IS NULL OR %(category)s IN (coalesce(sa.parsed->>'kind', 'other'), coalesce(sb.parsed->>'kind', 'other')))
  AND (%(brand)s::integer IS NULL OR EXISTS (SELECT FROM canonical_products c
                                              WHERE c.id IN (sa.canonical_product_id, sb.canonical_product_id) AND c.brand_id = %(brand)s))

-- name: list_reviews
-- The most doubtful and most used first: in the order of the index. A side is shown by one of its listings: on the menu and with a
-- picture if there is one.
WITH page AS MATERIALIZED (
  SELECT r.*, {doubt} AS doubt
  {from_reviews}
     AND (%(after)s::double precision IS NULL OR {doubt} < %(after)s OR ({doubt} = %(after)s AND (r.a, r.b) > (%(after_a)s::bigint, %(after_b)s::bigint)))
   ORDER BY {doubt} DESC, r.a, r.b LIMIT %(limit)s),
sides AS MATERIALIZED (
  SELECT s.id, x.side
    FROM match_signatures s
    CROSS JOIN LATERAL (
      SELECT count(*) AS listings, count(DISTINCT y.dispensary_id) AS stores FROM product_matches y WHERE y.signature_id = s.id) n
    CROSS JOIN LATERAL (
      SELECT json_build_object('signature_id', s.id, 'product_id', p.id, 'name', p.name, 'brand', p.brand_name, 'store_id', d.id, 'store', d.name,
               'platform', p.provider, 'currency', currency_of(d.state), 'price', effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special), 'sizes', m.sizes,
               'stock_status', p.stock_status, 'image_url', p.image_url, 'local_image_path', p.local_image_path,
               'canonical_product_id', s.canonical_product_id, 'listings', n.listings, 'stores', n.stores, 'parsed', s.parsed) AS side
        FROM product_matches m JOIN catalog_products p ON p.id = m.product_id LEFT JOIN dispensaries d ON d.id = p.dispensary_id
       WHERE m.signature_id = s.id
       ORDER BY p.last_seen_at IS NOT NULL, p.local_image_path IS NULL, p.image_url IS NULL, p.id LIMIT 1) x
   WHERE s.id IN (SELECT a FROM page UNION SELECT b FROM page))
SELECT page.doubt, page.confidence, page.together, page.impact, page.reasons, page.skipped_at, a.side AS a, b.side AS b
  FROM page JOIN sides a ON a.id = page.a JOIN sides b ON b.id = page.b
 ORDER BY page.doubt DESC, page.a, page.b;

-- name: count_reviews
SELECT count(*) AS n FROM (SELECT 1 {from_reviews} LIMIT %(most)s) found;

-- name: categories
-- Categories of waiting pairs with how many they are. A signature leaves its kind out where that is `other`.
SELECT coalesce(sa.parsed->>'kind', 'other') AS category, count(*) AS pairs, count(*) FILTER (WHERE r.together) AS together
  FROM match_reviews r JOIN match_signatures sa ON sa.id = r.a
 WHERE r.skipped_at IS NULL
 GROUP BY 1 ORDER BY 2 DESC, 1;

-- name: skip
UPDATE match_reviews SET skipped_at = CASE WHEN %(skipped)s::boolean THEN coalesce(skipped_at, now()) END
 WHERE a = %(a)s AND b = %(b)s
RETURNING a;

-- name: category_counts
-- What is matched, by category. Of the listings on menus only those that were matched are here.
SELECT c.category, count(*) AS products, sum(c.listings) AS listings, count(*) FILTER (WHERE c.stores > 1) AS shared,
       coalesce(sum(c.listings) FILTER (WHERE c.stores > 1), 0) AS shared_listings
  FROM canonical_products c
 WHERE c.merged_into IS NULL AND c.listings > 0
 GROUP BY c.category ORDER BY 3 DESC, 1;
