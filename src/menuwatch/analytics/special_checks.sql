-- Checks of specials: whether the store really asked the regular price (special_checks.py).

-- name: stores
-- Stores with a menu, those whose check is oldest first.
SELECT d.id FROM dispensaries d LEFT JOIN special_check_stores c ON c.dispensary_id = d.id
 WHERE d.last_crawled_at IS NOT NULL ORDER BY c.checked_at NULLS FIRST, d.id;

-- name: remove_gone
DELETE FROM special_checks s WHERE NOT EXISTS (SELECT FROM dispensaries d WHERE d.id = s.dispensary_id);

-- name: products
-- Products on offer with a special price.
SELECT p.id, p.dispensary_id, p.variants, option_prices(p.variants) AS prices
  FROM catalog_products p
 WHERE p.dispensary_id = ANY (%(stores)s::integer[]) AND p.last_seen_at IS NULL AND p.stock_status <> 'oos'
   AND jsonb_path_exists(p.variants, '$[*] ? (@.special_rec != null || @.special_med != null)')
 ORDER BY p.id;

-- name: put
-- The checks of these stores take the place of their former ones.
WITH n AS (
  SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) n(product_id bigint, size text, dispensary_id integer, price numeric, regular numeric, verdict text, score integer,
         usual numeric, observed_days numeric, began_at timestamptz, observed_from timestamptz, regular_until timestamptz)
), gone AS (
  DELETE FROM special_checks s WHERE s.dispensary_id = ANY (%(stores)s::integer[])
     AND NOT EXISTS (SELECT FROM n WHERE n.product_id = s.product_id AND n.size = s.size)
), checked AS (
  INSERT INTO special_check_stores (dispensary_id, checked_at) SELECT d.id, %(now)s::timestamptz FROM dispensaries d WHERE d.id = ANY (%(stores)s::integer[])
      ON CONFLICT (dispensary_id) DO UPDATE SET checked_at = excluded.checked_at
)
INSERT INTO special_checks (product_id, size, dispensary_id, price, regular, verdict, score, usual, observed_days, began_at, observed_from,
       regular_until)
SELECT n.product_id, n.size, n.dispensary_id, n.price, n.regular, n.verdict, n.score, n.usual, n.observed_days, n.began_at, n.observed_from, n.regular_until
  FROM n
    ON CONFLICT (product_id, size) DO UPDATE SET dispensary_id = excluded.dispensary_id, price = excluded.price, regular = excluded.regular,
       verdict = excluded.verdict, score = excluded.score, usual = excluded.usual, observed_days = excluded.observed_days,
       began_at = excluded.began_at, observed_from = excluded.observed_from, regular_until = excluded.regular_until;
