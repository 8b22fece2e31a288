-- Reports of one run. `state` is a state, `all` (all states together) or `unknown`; `category` likewise. A page starts behind the row whose
-- sort values are `after_…`.

-- piece: coverage
json_build_object('stores', stores, 'known_stores', known_stores, 'stale_stores', stale_stores, 'partial', partial, 'scheduled', scheduled,
                         'succeeded', succeeded, 'share', round(succeeded::numeric / nullif(scheduled, 0), 4), 'oldest_crawl_at', oldest_crawl_at) AS coverage

-- piece: hours
round((f.in_seconds / 3600)::numeric, 2) AS in_hours, round((f.out_seconds / 3600)::numeric, 2) AS out_hours,
       round((f.absent_seconds / 3600)::numeric, 2) AS absent_hours, round((f.unknown_seconds / 3600)::numeric, 2) AS unknown_hours,
       round((f.out_seconds / nullif(f.in_seconds + f.out_seconds, 0))::numeric, 4) AS out_share

-- piece: of_run
run_id = %(run)s AND (%(after_place)s::bigint IS NULL OR place > %(after_place)s)

-- piece: in_scope
(%(state)s::text IS NULL OR (%(state)s = 'all' AND all_states) OR (%(state)s = 'unknown' AND NOT all_states AND state IS NULL)
        OR (NOT all_states AND state = %(state)s))

-- piece: of_run_f
f.run_id = %(run)s AND (%(after_place)s::bigint IS NULL OR f.place > %(after_place)s)

-- piece: in_scope_f
(%(state)s::text IS NULL OR (%(state)s = 'all' AND f.all_states) OR (%(state)s = 'unknown' AND NOT f.all_states AND f.state IS NULL)
        OR (NOT f.all_states AND f.state = %(state)s))

-- piece: in_state
(%(state)s::text IS NULL OR %(state)s = 'all' OR (%(state)s = 'unknown' AND f.state IS NULL) OR f.state = %(state)s)

-- piece: at_stores
(%(store)s::integer[] IS NULL OR f.dispensary_id = ANY (%(store)s))

-- name: current_run
SELECT id, refreshed_at, started_at, window_from, window_to, seconds, steps FROM analytics_run;

-- name: why_empty
-- What can be why a report has no rows.
SELECT NOT EXISTS (SELECT FROM dispensaries WHERE state = %(state)s::text) AS no_stores,
       NOT EXISTS (SELECT FROM canonical_products WHERE id = %(canonical_product)s::bigint) AS no_product,
       NOT EXISTS (SELECT FROM canonical_products) AND EXISTS (SELECT FROM catalog_products) AS not_matched;

-- name: kept_run
-- A run that is still there for who began to page through it.
SELECT id, finished_at AS refreshed_at, started_at, window_from, window_to, seconds, steps
  FROM (SELECT * FROM analytics_runs WHERE status = 'done' ORDER BY id DESC LIMIT 2) r WHERE r.id = %(run)s;

-- name: failed_since
-- The last refresh, where it failed after this run.
SELECT r.finished_at AS at, r.error FROM (SELECT * FROM analytics_runs WHERE status <> 'running' ORDER BY id DESC LIMIT 1) r
 WHERE r.status = 'failed' AND r.id > coalesce(%(run)s::bigint, 0);

-- name: price_per_gram
SELECT place, all_states, state, currency, category, products, options, without_weight, without_price, implausible,
       json_build_object('n', regular_n, 'p10', regular_p10, 'median', regular_median, 'p90', regular_p90, 'mean', regular_mean) AS regular,
       json_build_object('n', effective_n, 'p10', effective_p10, 'median', effective_median, 'p90', effective_p90, 'mean', effective_mean) AS effective,
       {coverage}
  FROM analytics_price_stats
 WHERE {of_run}
   AND {in_scope}
   AND (%(category)s::text IS NULL OR (%(category)s = 'unknown' AND category IS NULL) OR category = %(category)s)
 ORDER BY place LIMIT %(limit)s;

-- piece: shares
products, in_stock, round(products::numeric / nullif(of_products, 0), 6) AS share, of_products,
       round(stores::numeric / nullif(of_stores, 0), 6) AS store_share, of_stores

-- name: brands
SELECT place, all_states, state, brand, brand_id, {shares},
       {coverage}
  FROM analytics_brand_stats
 WHERE {of_run}
   AND {in_scope}
   AND (%(brand)s::text IS NULL OR lower(brand) = lower(%(brand)s))
   AND (%(brand_id)s::integer IS NULL OR brand_id = live_brand(%(brand_id)s))
 ORDER BY place LIMIT %(limit)s;

-- name: categories
SELECT place, all_states, state, category, {shares},
       {coverage}
  FROM analytics_category_stats
 WHERE {of_run}
   AND {in_scope}
   AND (%(category)s::text IS NULL OR (%(category)s = 'unknown' AND category IS NULL) OR category = %(category)s)
 ORDER BY place LIMIT %(limit)s;

-- name: discounts
SELECT place, all_states, state, all_categories, category, products, on_special, round(on_special::numeric / nullif(products, 0), 4) AS special_share,
       named_only, depth_median, depth_p90, depth_mean,
       {coverage}
  FROM analytics_discount_stats
 WHERE {of_run}
   AND {in_scope}
   AND (%(category)s::text IS NULL OR (%(category)s = 'all' AND all_categories)
        OR (%(category)s = 'unknown' AND NOT all_categories AND category IS NULL) OR (NOT all_categories AND category = %(category)s))
 ORDER BY place LIMIT %(limit)s;

-- name: out_of_stock
SELECT f.place, f.state, f.category, f.dispensary_id, s.name AS store, f.products, f.out_products,
       {hours},
       json_build_object('stores', f.stores, 'known_stores', f.known_stores, 'stale_stores', f.stale_stores, 'partial', f.partial, 'scheduled', f.scheduled,
                         'succeeded', f.succeeded, 'share', round(f.succeeded::numeric / nullif(f.scheduled, 0), 4),
                         'oldest_crawl_at', f.oldest_crawl_at) AS coverage
  FROM analytics_stock_stats f LEFT JOIN analytics_store_stats s ON s.run_id = f.run_id AND s.dispensary_id = f.dispensary_id
 WHERE f.run_id = %(run)s AND (%(after_place)s::bigint IS NULL OR f.place > %(after_place)s) AND f.level = %(by)s
   AND (%(state)s::text IS NULL OR (%(state)s = 'unknown' AND f.state IS NULL) OR f.state = %(state)s)
   AND (%(category)s::text IS NULL OR (%(category)s = 'unknown' AND f.category IS NULL) OR f.category = %(category)s)
   AND {at_stores}
 ORDER BY f.place LIMIT %(limit)s;

-- name: out_of_stock_products
SELECT f.place, f.product_id, f.dispensary_id, s.name AS store, f.state, p.name, f.brand AS brand_name, f.category, f.times_out,
       {hours},
       json_build_object('stores', 1, 'known_stores', 1, 'stale_stores', s.is_stale::integer, 'partial', s.is_partial::integer, 'scheduled', s.scheduled,
                         'succeeded', s.succeeded, 'share', round(s.succeeded::numeric / nullif(s.scheduled, 0), 4),
                         'oldest_crawl_at', s.last_crawled_at) AS coverage
  FROM analytics_out_product_stats f JOIN analytics_store_stats s ON s.run_id = f.run_id AND s.dispensary_id = f.dispensary_id
  LEFT JOIN catalog_products p ON p.id = f.product_id
 WHERE f.run_id = %(run)s AND (%(after_place)s::bigint IS NULL OR f.place > %(after_place)s)
   AND (%(state)s::text IS NULL OR (%(state)s = 'unknown' AND f.state IS NULL) OR f.state = %(state)s)
   AND (%(category)s::text IS NULL OR (%(category)s = 'unknown' AND f.category IS NULL) OR f.category = %(category)s)
   AND {at_stores}
   AND (%(brand)s::text IS NULL OR lower(f.brand) = lower(%(brand)s))
   AND (%(product)s::bigint IS NULL OR f.product_id = %(product)s)
 ORDER BY f.place LIMIT %(limit)s;

-- name: new_and_gone_by_store
SELECT f.day, f.dispensary_id, s.name AS store, f.state, f.new_products, f.gone_products, f.returned, f.price_changes, f.stock_changes, f.crawls,
       json_build_object('stores', (f.crawls > 0)::integer, 'known_stores', 1, 'stale_stores', s.is_stale::integer,
                         'partial', (f.partial > 0)::integer, 'scheduled', f.scheduled,
                         'succeeded', f.succeeded, 'share', round(f.succeeded::numeric / nullif(f.scheduled, 0), 4),
                         'oldest_crawl_at', s.last_crawled_at) AS coverage
  FROM analytics_daily_stats f JOIN analytics_store_stats s ON s.run_id = f.run_id AND s.dispensary_id = f.dispensary_id
 WHERE f.run_id = %(run)s
   AND (%(since)s::date IS NULL OR f.day >= %(since)s) AND (%(until)s::date IS NULL OR f.day < %(until)s)
   AND {in_state}
   AND {at_stores}
   AND (%(after_day)s::date IS NULL OR f.day <= %(after_day)s)
   AND (%(after_day)s IS NULL OR (f.day, -f.dispensary_id) < (%(after_day)s, -%(after_dispensary_id)s::integer))
 ORDER BY f.day DESC, f.dispensary_id LIMIT %(limit)s;

-- name: new_and_gone_by_state
-- `by` all: all states as one. `state_key`: states without a name come last.
WITH g AS (
  SELECT f.day, CASE WHEN %(by)s <> 'all' THEN f.state END AS state, sum(f.new_products) AS new_products,
         sum(f.gone_products) AS gone_products, sum(f.returned) AS returned, sum(f.price_changes) AS price_changes,
         sum(f.stock_changes) AS stock_changes, sum(f.crawls) AS crawls, count(*) FILTER (WHERE f.crawls > 0) AS stores,
         sum(f.scheduled) AS scheduled, sum(f.succeeded) AS succeeded, count(*) FILTER (WHERE s.is_stale AND f.crawls > 0) AS stale_stores,
         count(*) FILTER (WHERE f.partial > 0) AS partial,
         min(s.last_crawled_at) AS oldest_crawl_at
    FROM analytics_daily_stats f JOIN analytics_store_stats s ON s.run_id = f.run_id AND s.dispensary_id = f.dispensary_id
   WHERE f.run_id = %(run)s
     AND (%(since)s::date IS NULL OR f.day >= %(since)s) AND (%(until)s::date IS NULL OR f.day < %(until)s)
     AND {in_state}
     AND {at_stores}
     AND (%(after_day)s::date IS NULL OR f.day <= %(after_day)s)
   GROUP BY 1, 2
), k AS (
  SELECT CASE WHEN %(by)s <> 'all' THEN state END AS state, count(*) AS known FROM analytics_store_stats WHERE run_id = %(run)s GROUP BY 1
)
SELECT g.day, %(by)s = 'all' AS all_states, g.state, coalesce(g.state, '~') AS state_key, g.new_products, g.gone_products, g.returned, g.price_changes, g.stock_changes, g.crawls,
       json_build_object('stores', g.stores, 'known_stores', k.known, 'stale_stores', g.stale_stores, 'partial', g.partial, 'scheduled', g.scheduled,
                         'succeeded', g.succeeded, 'share', round(g.succeeded::numeric / nullif(g.scheduled, 0), 4),
                         'oldest_crawl_at', g.oldest_crawl_at) AS coverage
  FROM g JOIN k ON k.state IS NOT DISTINCT FROM g.state
 WHERE %(after_day)s IS NULL OR g.day < %(after_day)s OR (g.day = %(after_day)s AND coalesce(g.state, '~') COLLATE "C" > %(after_state_key)s::text)
 ORDER BY g.day DESC, coalesce(g.state, '~') COLLATE "C" LIMIT %(limit)s;

-- name: stores
SELECT f.dispensary_id, f.name AS store, f.platform, f.state, f.crawl_enabled, f.is_scheduled, f.interval_hours, f.last_crawled_at,
       round(extract(epoch FROM r.window_to - f.last_crawled_at) / 3600, 2) AS age_hours, f.is_stale, f.products,
       f.failed, f.quarantined, f.never_begun, f.undecided,
       round((f.observed_seconds / extract(epoch FROM r.window_to - r.window_from))::numeric, 4) AS observed_share,
       json_build_object('stores', (f.last_crawled_at IS NOT NULL)::integer, 'known_stores', 1,
                         'stale_stores', (f.is_stale AND f.last_crawled_at IS NOT NULL)::integer, 'partial', f.is_partial::integer, 'scheduled', f.scheduled,
                         'succeeded', f.succeeded, 'share', round(f.succeeded::numeric / nullif(f.scheduled, 0), 4),
                         'oldest_crawl_at', f.last_crawled_at) AS coverage
  FROM analytics_store_stats f JOIN analytics_runs r ON r.id = f.run_id
 WHERE f.run_id = %(run)s AND (%(after_dispensary_id)s::integer IS NULL OR f.dispensary_id > %(after_dispensary_id)s)
   AND {in_state}
   AND (%(platform)s::text IS NULL OR f.platform = %(platform)s)
   AND (%(stale)s::boolean IS NULL OR f.is_stale = %(stale)s)
   AND {at_stores}
 ORDER BY f.dispensary_id LIMIT %(limit)s;

-- name: coverage
-- Of each state, and of all of them first (a page is not continued). `never_crawled` are among the stale ones of nothing: they are counted apart.
SELECT grouping(f.state) = 1 AS all_states, f.state, count(*) AS known_stores, count(f.last_crawled_at) AS crawled_stores,
       count(*) FILTER (WHERE f.last_crawled_at IS NULL) AS never_crawled,
       count(*) FILTER (WHERE f.is_stale AND f.last_crawled_at IS NOT NULL) AS stale_stores,
       count(*) FILTER (WHERE NOT f.is_scheduled) AS not_scheduled, sum(f.failed) AS failed, sum(f.quarantined) AS quarantined,
       sum(f.never_begun) AS never_begun, sum(f.undecided) AS undecided,
       round((sum(f.observed_seconds) FILTER (WHERE f.last_crawled_at IS NOT NULL)
              / nullif(count(f.last_crawled_at) * extract(epoch FROM r.window_to - r.window_from), 0))::numeric, 4) AS observed_share,
       round((extract(epoch FROM r.window_to - percentile_disc(0.5) WITHIN GROUP (ORDER BY f.last_crawled_at)) / 3600)::numeric, 2) AS median_age_hours,
       json_build_object('stores', count(f.last_crawled_at), 'known_stores', count(*),
                         'stale_stores', count(*) FILTER (WHERE f.is_stale AND f.last_crawled_at IS NOT NULL),
                         'partial', count(*) FILTER (WHERE f.is_partial), 'scheduled', sum(f.scheduled),
                         'succeeded', sum(f.succeeded), 'share', round(sum(f.succeeded)::numeric / nullif(sum(f.scheduled), 0), 4),
                         'oldest_crawl_at', min(f.last_crawled_at)) AS coverage
  FROM analytics_store_stats f JOIN analytics_runs r ON r.id = f.run_id
 WHERE f.run_id = %(run)s
 GROUP BY GROUPING SETS ((r.window_to, r.window_from), (r.window_to, r.window_from, f.state))
HAVING %(state)s::text IS NULL OR (%(state)s = 'all' AND grouping(f.state) = 1)
    OR (grouping(f.state) = 0 AND CASE %(state)s WHEN 'unknown' THEN f.state IS NULL ELSE f.state = %(state)s END)
 ORDER BY 1 DESC, f.state LIMIT %(limit)s;

-- piece: of_brand
(%(brand_id)s::integer IS NULL OR f.brand_id = (SELECT live_brand(%(brand_id)s)))
   AND (%(brand)s::text IS NULL OR f.brand_id = ANY (ARRAY (SELECT live_brand(n.id) FROM brands n WHERE lower(n.name) = lower(%(brand)s))))

-- piece: of_category
(%(category)s::text IS NULL OR (%(category)s = 'unknown' AND f.category IS NULL) OR f.category = %(category)s)

-- piece: of_canonical
(%(canonical_product)s::bigint IS NULL OR f.canonical_product_id = (SELECT live_canonical_product(%(canonical_product)s)))

-- piece: carried
f.locations, f.in_stock, f.of_locations, round(f.in_stock::numeric / nullif(f.of_locations, 0), 4) AS share, f.of_category,
       round(f.in_stock::numeric / nullif(f.of_category, 0), 4) AS category_share

-- name: distribution
SELECT f.place, f.all_states, f.state, f.canonical_product_id, c.name, f.brand_id, b.name AS brand, f.category, {carried}
  FROM analytics_distribution_stats f JOIN canonical_products c ON c.id = f.canonical_product_id LEFT JOIN brands b ON b.id = f.brand_id
 WHERE {of_run_f} AND {in_scope_f} AND {of_brand} AND {of_category} AND {of_canonical}
 ORDER BY f.place LIMIT %(limit)s;

-- name: brand_distribution
-- Categories of a brand are rows only if the filter names a category or a brand.
SELECT f.place, f.all_states, f.state, f.brand_id, b.name AS brand, f.all_categories, f.category, {carried},
       round(f.listed::numeric / f.locations, 2) AS products_per_location
  FROM analytics_brand_distribution_stats f JOIN brands b ON b.id = f.brand_id
 WHERE {of_run_f} AND {in_scope_f} AND {of_brand}
   AND CASE WHEN %(category)s::text IS NULL THEN %(brand)s::text IS NOT NULL OR %(brand_id)s::integer IS NOT NULL OR f.all_categories
            WHEN %(category)s = 'all' THEN f.all_categories
            ELSE NOT f.all_categories AND ((%(category)s = 'unknown' AND f.category IS NULL) OR f.category = %(category)s) END
 ORDER BY f.place LIMIT %(limit)s;

-- piece: dispersion_columns
f.all_states, f.state, f.canonical_product_id, c.name, f.brand_id, b.name AS brand, f.category, f.size, f.currency, f.locations, f.stale_locations, f.implausible_locations,
       f.min, f.p25,
       f.median, f.p75, f.max, f.mean, f.cv, f.max - f.min AS gap, round((f.max - f.min) / f.min, 4) AS gap_share, round(f.max / f.min, 4) AS ratio,
       f.cheapest_dispensary_id, lo.name AS cheapest_store, f.dearest_dispensary_id, hi.name AS dearest_store
  FROM analytics_dispersion_stats f JOIN canonical_products c ON c.id = f.canonical_product_id LEFT JOIN brands b ON b.id = f.brand_id
  JOIN analytics_store_stats lo ON lo.run_id = f.run_id AND lo.dispensary_id = f.cheapest_dispensary_id
  JOIN analytics_store_stats hi ON hi.run_id = f.run_id AND hi.dispensary_id = f.dearest_dispensary_id

-- name: price_dispersion
SELECT f.place, {dispersion_columns}
 WHERE {of_run_f} AND {in_scope_f} AND {of_brand} AND {of_category} AND {of_canonical}
 ORDER BY f.place LIMIT %(limit)s;

-- name: widest_gaps
SELECT f.gap_place, {dispersion_columns}
 WHERE f.run_id = %(run)s AND (%(after_gap_place)s::bigint IS NULL OR f.gap_place > %(after_gap_place)s) AND {in_scope_f} AND {of_brand}
   AND {of_category} AND {of_canonical}
 ORDER BY f.gap_place LIMIT %(limit)s;

-- name: cheapest_quarter
SELECT f.place, f.state, f.location_id, f.dispensary_id, coalesce(l.name, d.name) AS store, f.category, f.brand_id, b.name AS brand, f.compared,
       f.cheapest, round(f.cheapest::numeric / f.compared, 4) AS share
  FROM analytics_cheapest_stats f
  LEFT JOIN locations l ON l.id = f.location_id
  JOIN analytics_store_stats d ON d.run_id = f.run_id AND d.dispensary_id = f.dispensary_id
  LEFT JOIN brands b ON b.id = f.brand_id
 WHERE {of_run_f} AND f.level = %(by)s AND (%(state)s::text IS NULL OR f.state = %(state)s) AND {of_brand} AND {of_category}
   AND (%(store)s::integer[] IS NULL OR f.dispensary_id = ANY (%(store)s)
        OR f.location_id IN (SELECT k.location_id FROM store_locations k WHERE k.dispensary_id = ANY (%(store)s)))
 ORDER BY f.place LIMIT %(limit)s;

-- name: specials
SELECT f.place, f.product_id, p.name, nullif(f.size, '') AS size, f.dispensary_id, s.name AS store, f.state, f.category, f.brand_id, f.brand, currency_of(f.state) AS currency, f.price,
       f.regular, round(1 - f.price / f.regular, 4) AS stated_saving, f.usual, round(1 - f.price / nullif(f.usual, 0), 4) AS saving, f.verdict, f.score,
       f.observed_days, f.observed_from, f.began_at, f.regular_until, f.checked_at
  FROM analytics_special_stats f
  JOIN analytics_store_stats s ON s.run_id = f.run_id AND s.dispensary_id = f.dispensary_id
  LEFT JOIN catalog_products p ON p.id = f.product_id
 WHERE {of_run_f} AND {in_state} AND {at_stores} AND {of_category}
   AND (%(brand)s::text IS NULL OR lower(f.brand) = lower(%(brand)s))
   AND (%(brand_id)s::integer IS NULL OR f.brand_id = (SELECT live_brand(%(brand_id)s)))
   AND (%(verdict)s::text IS NULL OR f.verdict = %(verdict)s)
 ORDER BY f.place LIMIT %(limit)s;

-- name: special_groups
SELECT f.place, f.all_states, f.state, f.dispensary_id, s.name AS store, f.brand_id, f.brand, f.category, f.specials, f.genuine, f.doubtful, f.never_asked,
       f.unknown, f.never_asked_share, f.score_median, f.oldest_check_at
  FROM analytics_special_group_stats f
  LEFT JOIN analytics_store_stats s ON s.run_id = f.run_id AND s.dispensary_id = f.dispensary_id
 WHERE {of_run_f} AND f.by = %(by)s AND ({in_scope_f} OR (%(state)s = 'all' AND f.by = 'store')) AND {at_stores} AND {of_category}
   AND (%(brand)s::text IS NULL OR lower(f.brand) = lower(%(brand)s))
   AND (%(brand_id)s::integer IS NULL OR f.brand_id = (SELECT live_brand(%(brand_id)s)))
 ORDER BY f.place LIMIT %(limit)s;

-- name: shrinkflation
SELECT f.place, f.canonical_product_id, c.name, f.brand_id, b.name AS brand, f.category, f.dispensary_id, s.name AS store, f.state, f.currency, f.stores, f.larger,
       f.smaller, f.larger_price, f.smaller_price, f.larger_until, f.smaller_from, f.larger_product_id, f.smaller_product_id, f.size_change,
       f.unit_price_change
  FROM analytics_shrinkflation_stats f
  JOIN canonical_products c ON c.id = f.canonical_product_id
  LEFT JOIN brands b ON b.id = f.brand_id
  LEFT JOIN analytics_store_stats s ON s.run_id = f.run_id AND s.dispensary_id = f.dispensary_id
 WHERE {of_run_f} AND {in_state} AND {at_stores} AND {of_brand} AND {of_category} AND {of_canonical}
 ORDER BY f.place LIMIT %(limit)s;

-- name: market_days
SELECT day, state, category, products, in_stock, out_of_stock, unknown_stock, round(out_of_stock::numeric / nullif(in_stock + out_of_stock, 0), 4) AS out_share,
       priced, on_special, round(on_special::numeric / nullif(priced, 0), 4) AS special_share, depth_median, depth_mean, stores, known_stores
  FROM market_days
 WHERE (%(since)s::date IS NULL OR day >= %(since)s) AND (%(until)s::date IS NULL OR day < %(until)s)
   AND (%(state)s::text IS NULL OR state = %(state)s) AND (%(category)s::text IS NULL OR category = %(category)s)
   AND (%(after_day)s::date IS NULL OR day < %(after_day)s OR (day = %(after_day)s AND (state, category) > (%(after_state)s::text, %(after_category)s::text)))
 ORDER BY day DESC, state, category LIMIT %(limit)s;

-- name: first_market_day
SELECT min(day) AS first_day FROM market_days;

-- name: first_brand_day
SELECT min(day) AS first_day FROM brand_days;

-- name: brand_days
-- Days before a merge keep the brand that it was; a filter by brand finds both.
SELECT f.day, f.state, f.brand_id, b.name AS brand, f.products, f.in_stock, f.of_products, round(f.products::numeric / f.of_products, 6) AS share, f.stores,
       f.of_stores, round(f.stores::numeric / f.of_stores, 6) AS store_share
  FROM brand_days f JOIN brands b ON b.id = f.brand_id
 WHERE (%(since)s::date IS NULL OR f.day >= %(since)s) AND (%(until)s::date IS NULL OR f.day < %(until)s)
   AND (%(state)s::text IS NULL OR f.state = %(state)s)
   AND (%(brand_id)s::integer IS NULL OR f.brand_id = ANY (merged_brands(ARRAY[%(brand_id)s])))
   AND (%(brand)s::text IS NULL OR f.brand_id = ANY (merged_brands(ARRAY (SELECT n.id FROM brands n WHERE lower(n.name) = lower(%(brand)s)))))
   AND (%(after_day)s::date IS NULL OR f.day < %(after_day)s
        OR (f.day = %(after_day)s AND (f.state, -f.products, f.brand_id) > (%(after_state)s::text, -%(after_products)s::integer, %(after_brand_id)s::integer)))
 ORDER BY f.day DESC, f.state, f.products DESC, f.brand_id LIMIT %(limit)s;

-- name: report_sizes
-- How many rows each figure has.
SELECT 'price-per-gram' AS figure, (SELECT count(*) FROM analytics_price_stats WHERE run_id = %(run)s) AS rows
 UNION ALL SELECT 'brands', (SELECT count(*) FROM analytics_brand_stats WHERE run_id = %(run)s)
 UNION ALL SELECT 'categories', (SELECT count(*) FROM analytics_category_stats WHERE run_id = %(run)s)
 UNION ALL SELECT 'discounts', (SELECT count(*) FROM analytics_discount_stats WHERE run_id = %(run)s)
 UNION ALL SELECT 'out-of-stock', (SELECT count(*) FROM analytics_stock_stats WHERE run_id = %(run)s)
 UNION ALL SELECT 'out-of-stock/products', (SELECT coalesce(max(place), 0) FROM analytics_out_product_stats WHERE run_id = %(run)s)
 UNION ALL SELECT 'new-and-gone', (SELECT count(*) FROM analytics_daily_stats WHERE run_id = %(run)s)
 UNION ALL SELECT 'stores', (SELECT count(*) FROM analytics_store_stats WHERE run_id = %(run)s)
 UNION ALL SELECT 'distribution', (SELECT coalesce(max(place), 0) FROM analytics_distribution_stats WHERE run_id = %(run)s)
 UNION ALL SELECT 'distribution/brands', (SELECT coalesce(max(place), 0) FROM analytics_brand_distribution_stats WHERE run_id = %(run)s)
 UNION ALL SELECT 'price-dispersion', (SELECT coalesce(max(place), 0) FROM analytics_dispersion_stats WHERE run_id = %(run)s)
 UNION ALL SELECT 'widest-gaps', (SELECT coalesce(max(place), 0) FROM analytics_dispersion_stats WHERE run_id = %(run)s)
 UNION ALL SELECT 'cheapest-quarter', (SELECT coalesce(max(place), 0) FROM analytics_cheapest_stats WHERE run_id = %(run)s)
 UNION ALL SELECT 'specials', (SELECT coalesce(max(place), 0) FROM analytics_special_stats WHERE run_id = %(run)s)
 UNION ALL SELECT 'shrinkflation', (SELECT coalesce(max(place), 0) FROM analytics_shrinkflation_stats WHERE run_id = %(run)s)
 UNION ALL SELECT 'by-day', (SELECT count(*) FROM market_days)
 UNION ALL SELECT 'by-day/brands', (SELECT count(*) FROM brand_days)
 UNION ALL SELECT 'specials/groups', (SELECT coalesce(max(place), 0) FROM analytics_special_group_stats WHERE run_id = %(run)s);
