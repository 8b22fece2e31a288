-- Reports of bargains: checked specials, one by one and by group.

-- name: fill_specials
-- Specials that are still on offer, those that are farthest from true first.
INSERT INTO analytics_special_stats (run_id, place, product_id, size, dispensary_id, state, category, brand_id, brand, price, regular, verdict, score,
       usual, observed_days, began_at, observed_from, regular_until, checked_at)
SELECT %(run)s::bigint,
       row_number() OVER (ORDER BY array_position('{never_asked,doubtful,genuine,unknown}'::text[], k.verdict), k.score NULLS LAST,
                                   1 - k.price / k.regular DESC, k.product_id, k.size),
       k.product_id, k.size, k.dispensary_id, s.state, l.category, l.brand_id, l.brand, k.price, k.regular, k.verdict,
       k.score, k.usual, k.observed_days, k.began_at, k.observed_from, k.regular_until, c.checked_at
  FROM special_checks k
  JOIN special_check_stores c ON c.dispensary_id = k.dispensary_id
  JOIN analytics_store_stats s ON s.run_id = %(run)s AND s.dispensary_id = k.dispensary_id
  JOIN listings l ON l.product_id = k.product_id AND l.last_seen_at IS NULL AND l.stock_status <> 'oos';

-- name: fill_special_groups
-- By the share of specials whose regular price was never asked, of those of which that is known. Spellings of a brand that differ in case alone are
-- one, shown as most specials have it.
WITH s AS (
  SELECT *, lower(brand) AS key FROM analytics_special_stats WHERE run_id = %(run)s::bigint
), spelled AS (
  SELECT DISTINCT ON (key) key, brand FROM s WHERE brand IS NOT NULL GROUP BY key, brand ORDER BY key, count(*) DESC, brand
), g AS (
  SELECT CASE grouping(state, dispensary_id, key, category) WHEN 15 THEN 'all' WHEN 7 THEN 'state' WHEN 3 THEN 'store' WHEN 5 THEN 'brand' WHEN 13 THEN 'all_brand'
              WHEN 6 THEN 'category' ELSE 'all_category' END AS level,
         state, dispensary_id, CASE WHEN grouping(key) = 0 THEN max(brand_id) END AS brand_id, key, category, count(*) AS specials,
         count(*) FILTER (WHERE verdict = 'genuine') AS genuine,
         count(*) FILTER (WHERE verdict = 'doubtful') AS doubtful, count(*) FILTER (WHERE verdict = 'never_asked') AS never_asked,
         count(*) FILTER (WHERE verdict = 'unknown') AS unknown,
         percentile_cont(0.5) WITHIN GROUP (ORDER BY score) AS score_median, min(checked_at) AS oldest_check_at
    FROM s GROUP BY GROUPING SETS ((), (state), (state, dispensary_id), (key), (state, key), (category), (state, category))
), x AS (
  SELECT g.*, n.brand, level IN ('all', 'all_brand', 'all_category') AS all_states, regexp_replace(level, '^all_', '') AS by,
         round(never_asked::numeric / nullif(specials - unknown, 0), 4) AS never_asked_share
    FROM g LEFT JOIN spelled n ON n.key = g.key WHERE specials > 0
)
INSERT INTO analytics_special_group_stats (run_id, place, by, all_states, state, dispensary_id, brand_id, brand, category, specials, genuine, doubtful,
       never_asked, unknown, never_asked_share, score_median, oldest_check_at)
SELECT %(run)s, row_number() OVER (ORDER BY by, all_states DESC, CASE WHEN by <> 'store' THEN state END, never_asked_share DESC NULLS LAST, never_asked DESC, specials DESC, dispensary_id, brand,
                                   category),
       CASE WHEN by = 'all' THEN 'state' ELSE by END, all_states, state, dispensary_id, brand_id, brand, category, specials, genuine, doubtful, never_asked,
       unknown, never_asked_share, round(score_median::numeric, 1), oldest_check_at
  FROM x;

-- name: create_packs
-- Options of canonical products at stores: those on a menu now, and those that are no longer on a menu (`gone_at`: the last crawl that saw it).
CREATE TEMPORARY TABLE IF NOT EXISTS packs (
  canonical bigint NOT NULL, dispensary_id integer NOT NULL, product_id bigint NOT NULL, option text NOT NULL, size_key text NOT NULL,
  regular numeric NOT NULL, listed_at timestamptz NOT NULL, gone_at timestamptz);

-- name: create_pack_sizes
CREATE TEMPORARY TABLE IF NOT EXISTS pack_sizes (key text NOT NULL, size text NOT NULL, unit text NOT NULL, amount numeric NOT NULL);

-- name: fill_packs
INSERT INTO packs (canonical, dispensary_id, product_id, option, size_key, regular, listed_at, gone_at)
SELECT l.canonical, o.dispensary_id, o.product_id, o.option, o.size_key, o.listed_price, o.first_seen_at, o.last_seen_at
  FROM options o JOIN listings l ON l.product_id = o.product_id AND l.canonical IS NOT NULL
 WHERE o.listed_price > 0
 UNION ALL
SELECT l.canonical, l.dispensary_id, l.product_id, g.option, 'o' || g.option, g.regular, l.first_seen_at, g.seen_to
  FROM gone_options g
  JOIN listings l ON l.product_id = g.product_id AND l.last_seen_at IS NULL AND l.canonical IS NOT NULL
 WHERE g.regular > 0 AND NOT EXISTS (SELECT FROM options o WHERE o.product_id = g.product_id AND o.option = g.option);

-- name: pack_size_keys
SELECT DISTINCT size_key FROM packs;

-- name: fill_pack_sizes
INSERT INTO pack_sizes (key, size, unit, amount)
SELECT * FROM unnest(%(keys)s::text[], %(sizes)s::text[], %(units)s::text[], %(amounts)s::numeric[]);

-- name: note_gone_options
-- Options of states that ended since the last refresh and that their product does not have now, with the last crawl that saw them.
INSERT INTO gone_options (product_id, option, regular, seen_to)
SELECT DISTINCT ON (h.product_id, o.v ->> 0) h.product_id, o.v ->> 0, coalesce((o.v ->> 1)::numeric, (o.v ->> 3)::numeric), h.seen_to
  FROM product_history h
  JOIN listings l ON l.product_id = h.product_id AND l.last_seen_at IS NULL
 CROSS JOIN LATERAL json_array_elements(h.prices) o(v)
 WHERE h.ended_at > coalesce((SELECT max(r.window_to) FROM analytics_runs r WHERE r.status = 'done'), %(until)s::timestamptz - interval '90 days')
   AND h.ended_at <= %(until)s AND h.present AND o.v ->> 0 <> ''
   AND NOT EXISTS (SELECT FROM options x WHERE x.product_id = h.product_id AND x.option = o.v ->> 0)
 ORDER BY h.product_id, o.v ->> 0, h.seen_to DESC
    ON CONFLICT (product_id, option) DO UPDATE SET regular = excluded.regular, seen_to = excluded.seen_to;

-- name: prune_gone_options
DELETE FROM gone_options g
 WHERE g.seen_to < %(until)s::timestamptz - interval '90 days' OR NOT EXISTS (SELECT FROM catalog_products p WHERE p.id = g.product_id);

-- name: fill_shrinkflation
-- A smaller size that replaced a larger one, which is no longer on any menu, at a higher regular price per gram, milligram or piece: at one store, or
-- else across stores. The smaller size came at most 14 days before the larger one went, and 30 days after. One that was on a store's first menu may
-- always have been there.
WITH sized AS MATERIALIZED (
  SELECT p.*, z.size, z.unit, z.amount FROM packs p JOIN pack_sizes z ON z.key = p.size_key
), gone AS (
  SELECT DISTINCT ON (g.canonical, g.dispensary_id, g.size) g.*
    FROM sized g
   WHERE g.gone_at IS NOT NULL AND NOT EXISTS (SELECT FROM sized k WHERE k.canonical = g.canonical AND k.size = g.size AND k.gone_at IS NULL)
   ORDER BY g.canonical, g.dispensary_id, g.size, g.gone_at DESC, g.regular
), listings AS (
  -- Listings of smaller sizes, and since when they have had the size: where the listing is older, since its last state without the option.
  SELECT s.*, coalesce((SELECT max(h.ended_at) FROM product_history h
                         WHERE h.product_id = s.product_id AND h.present AND s.gone_at IS NULL
                           AND NOT EXISTS (SELECT FROM json_array_elements(h.prices) e WHERE e ->> 0 = s.option)), s.listed_at) AS from_at
    FROM sized s
   WHERE EXISTS (SELECT FROM gone g WHERE g.canonical = s.canonical AND g.unit = s.unit AND s.amount < g.amount AND s.amount * 2 > g.amount)
), smaller AS (
  SELECT s.canonical, s.dispensary_id, s.unit, s.size, s.amount, currency_of(d.state) AS currency,
         CASE WHEN min(s.from_at) > d.first_crawled_at THEN min(s.from_at) ELSE '-infinity' END AS from_at,
         min(s.regular) FILTER (WHERE s.gone_at IS NULL) AS regular,
         (array_agg(s.product_id ORDER BY s.regular, s.product_id) FILTER (WHERE s.gone_at IS NULL))[1] AS product_id
    FROM listings s JOIN dispensaries d ON d.id = s.dispensary_id
   GROUP BY s.canonical, s.dispensary_id, s.unit, s.size, s.amount, d.state, d.first_crawled_at
), pairs AS (
  SELECT g.canonical, g.dispensary_id, s.currency, g.unit, g.size AS larger, s.size AS smaller, g.amount AS larger_amount, s.amount AS smaller_amount,
         g.regular AS larger_price, s.regular AS smaller_price, g.gone_at AS larger_until, s.from_at AS smaller_from, g.product_id AS larger_product_id,
         s.product_id AS smaller_product_id
    FROM gone g
    JOIN smaller s ON s.canonical = g.canonical AND s.dispensary_id = g.dispensary_id AND s.unit = g.unit AND s.amount < g.amount
                  AND s.amount * 2 > g.amount
   WHERE s.product_id IS NOT NULL AND s.from_at BETWEEN g.gone_at - interval '14 days' AND g.gone_at + interval '30 days'
     AND s.regular * g.amount > g.regular * s.amount * 1.01
), larger AS (
  SELECT g.canonical, g.unit, g.size, g.amount, currency_of(d.state) AS currency, max(g.gone_at) AS until,
         percentile_cont(0.5) WITHIN GROUP (ORDER BY g.regular::double precision)::numeric AS regular
    FROM gone g JOIN dispensaries d ON d.id = g.dispensary_id GROUP BY 1, 2, 3, 4, 5
), after AS (
  SELECT canonical, unit, size, amount, currency, min(from_at) AS from_at,
         percentile_cont(0.5) WITHIN GROUP (ORDER BY regular::double precision)::numeric AS regular
    FROM smaller GROUP BY canonical, unit, size, amount, currency HAVING count(regular) > 0
), x AS (
  SELECT p.*, count(*) OVER (PARTITION BY p.canonical, p.larger, p.smaller) AS stores FROM pairs p
   UNION ALL
  SELECT l.canonical, NULL, l.currency, l.unit, l.size, s.size, l.amount, s.amount, round(l.regular, 2), round(s.regular, 2), l.until, s.from_at, NULL, NULL, 0
    FROM larger l
    JOIN after s ON s.canonical = l.canonical AND s.unit = l.unit AND s.currency = l.currency AND s.amount < l.amount AND s.amount * 2 > l.amount
   WHERE s.from_at BETWEEN l.until - interval '14 days' AND l.until + interval '30 days' AND s.regular * l.amount > l.regular * s.amount * 1.01
     AND NOT EXISTS (SELECT FROM pairs p WHERE p.canonical = l.canonical AND p.larger = l.size)
)
INSERT INTO analytics_shrinkflation_stats (run_id, place, canonical_product_id, brand_id, category, dispensary_id, state, currency, stores, unit, larger, smaller,
       larger_price, smaller_price, larger_until, smaller_from, larger_product_id, smaller_product_id, size_change, unit_price_change)
SELECT %(run)s::bigint, row_number() OVER (ORDER BY x.stores DESC, x.canonical, x.larger, x.smaller_price / x.smaller_amount * x.larger_amount / x.larger_price DESC,
                                           x.dispensary_id, x.currency DESC),
       x.canonical, c.brand_id, c.category, x.dispensary_id, s.state, x.currency, x.stores, x.unit, x.larger, x.smaller, x.larger_price, x.smaller_price,
       x.larger_until, x.smaller_from, x.larger_product_id, x.smaller_product_id, round(x.smaller_amount / x.larger_amount - 1, 4),
       round(x.smaller_price / x.smaller_amount * x.larger_amount / x.larger_price - 1, 4)
  FROM x
  JOIN canonical_product_brands c ON c.canonical_product_id = x.canonical
  LEFT JOIN analytics_store_stats s ON s.run_id = %(run)s AND s.dispensary_id = x.dispensary_id;

-- name: clear_market_days
-- A day has the figures of its last refresh.
DELETE FROM market_days WHERE day = (%(until)s::timestamptz AT TIME ZONE 'UTC')::date;

-- name: clear_brand_days
DELETE FROM brand_days WHERE day = (%(until)s::timestamptz AT TIME ZONE 'UTC')::date;

-- name: fill_market_days
-- Of menus that are not stale: the products on them by stock, and what is reduced of those on offer with a regular price.
WITH fresh AS (
  SELECT dispensary_id, coalesce(state, 'unknown') AS state FROM analytics_store_stats
   WHERE run_id = %(run)s::bigint AND NOT is_stale
), listed AS (
  SELECT s.state, coalesce(p.category, 'unknown') AS category, p.dispensary_id, count(*) AS products,
         count(*) FILTER (WHERE p.stock_status = 'in_stock') AS in_stock, count(*) FILTER (WHERE p.stock_status = 'oos') AS out_of_stock
    FROM listings p JOIN fresh s ON s.dispensary_id = p.dispensary_id
   WHERE p.last_seen_at IS NULL GROUP BY 1, 2, 3
), l AS (
  SELECT CASE grouping(state) WHEN 1 THEN 'all' ELSE state END AS state, CASE grouping(category) WHEN 1 THEN 'all' ELSE category END AS category,
         sum(products) AS products, sum(in_stock) AS in_stock, sum(out_of_stock) AS out_of_stock, count(DISTINCT dispensary_id) AS stores
    FROM listed GROUP BY CUBE (state, category)
), depths AS (
  SELECT s.state, coalesce(o.category, 'unknown') AS category, o.product_id, max(1 - o.effective / o.regular) FILTER (WHERE o.effective < o.regular) AS depth
    FROM options o JOIN fresh s ON s.dispensary_id = o.dispensary_id
   WHERE o.is_offered AND o.regular > 0 AND o.effective > 0 GROUP BY 1, 2, 3
), d AS (
  SELECT CASE grouping(state) WHEN 1 THEN 'all' ELSE state END AS state, CASE grouping(category) WHEN 1 THEN 'all' ELSE category END AS category,
         count(*) AS priced, count(depth) AS on_special, percentile_cont(0.5) WITHIN GROUP (ORDER BY depth) AS depth_median, avg(depth) AS depth_mean
    FROM depths GROUP BY CUBE (state, category)
), k AS (
  SELECT CASE grouping(state) WHEN 1 THEN 'all' ELSE coalesce(state, 'unknown') END AS state, count(*) AS known_stores
    FROM analytics_store_stats WHERE run_id = %(run)s GROUP BY GROUPING SETS ((), (state))
)
INSERT INTO market_days (day, state, category, products, in_stock, out_of_stock, priced, on_special, depth_median, depth_mean, stores, known_stores)
SELECT (%(until)s::timestamptz AT TIME ZONE 'UTC')::date, l.state, l.category, l.products, l.in_stock, l.out_of_stock, coalesce(d.priced, 0),
       coalesce(d.on_special, 0), round(d.depth_median::numeric, 4), round(d.depth_mean::numeric, 4), l.stores, k.known_stores
  FROM l LEFT JOIN d ON d.state = l.state AND d.category = l.category JOIN k ON k.state = l.state
 WHERE l.products > 0;

-- name: fill_brand_days
-- Canonical brands on menus that are not stale.
WITH c AS (
  SELECT coalesce(s.state, 'unknown') AS state, c.dispensary_id, c.brand_id, sum(c.products) AS products, sum(c.in_stock) AS in_stock
    FROM carried c JOIN analytics_store_stats s ON s.run_id = %(run)s::bigint AND s.dispensary_id = c.dispensary_id AND NOT s.is_stale
   GROUP BY 1, 2, 3
), w AS (
  SELECT CASE grouping(state) WHEN 1 THEN 'all' ELSE state END AS state, sum(products) AS of_products, count(DISTINCT dispensary_id) AS of_stores
    FROM c GROUP BY GROUPING SETS ((), (state))
), b AS (
  SELECT CASE grouping(state) WHEN 1 THEN 'all' ELSE state END AS state, brand_id, sum(products) AS products, sum(in_stock) AS in_stock, count(*) AS stores
    FROM c WHERE brand_id IS NOT NULL GROUP BY GROUPING SETS ((brand_id), (state, brand_id))
)
INSERT INTO brand_days (day, state, brand_id, products, in_stock, of_products, stores, of_stores)
SELECT (%(until)s::timestamptz AT TIME ZONE 'UTC')::date, b.state, b.brand_id, b.products, b.in_stock, w.of_products, b.stores, w.of_stores
  FROM b JOIN w ON w.state = b.state;
