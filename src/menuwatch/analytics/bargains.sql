-- Reports of bargains: checked specials, one by one and by group.

-- name: fill_specials
-- Specials that are still on offer, those that are farthest from true first.
INSERT INTO analytics_special_stats (run_id, place, product_id, size, dispensary_id, state, category, brand_id, brand, price, regular, verdict, score,
       usual, observed_days, began_at, observed_from, regular_until, checked_at)
SELECT %(run)s::bigint,
       row_number() OVER (ORDER BY array_position('{never_asked,doubtful,genuine,unknown}'::text[], k.verdict), k.score NULLS LAST,
                                   1 - k.price / k.regular DESC, k.product_id, k.size),
       k.product_id, k.size, k.dispensary_id, s.state, p.category_canon, i.brand_id, coalesce(b.name, p.brand_name), k.price, k.regular, k.verdict,
       k.score, k.usual, k.observed_days, k.began_at, k.observed_from, k.regular_until, c.checked_at
  FROM special_checks k
  JOIN special_check_stores c ON c.dispensary_id = k.dispensary_id
  JOIN analytics_store_stats s ON s.run_id = %(run)s AND s.dispensary_id = k.dispensary_id
  JOIN catalog_products p ON p.id = k.product_id AND p.last_seen_at IS NULL AND p.stock_status <> 'oos'
  LEFT JOIN product_identities i ON i.product_id = k.product_id
  LEFT JOIN brands b ON b.id = i.brand_id;

-- name: fill_special_groups
-- By the share of specials whose regular price was never asked, of those of which that is known.
WITH g AS (
  SELECT CASE grouping(state, dispensary_id, brand, category) WHEN 15 THEN 'all' WHEN 7 THEN 'state' WHEN 3 THEN 'store' WHEN 5 THEN 'brand' WHEN 13 THEN 'all_brand'
              WHEN 6 THEN 'category' ELSE 'all_category' END AS level,
         state, dispensary_id, max(brand_id) AS brand_id, brand, category, count(*) AS specials, count(*) FILTER (WHERE verdict = 'genuine') AS genuine,
         count(*) FILTER (WHERE verdict = 'doubtful') AS doubtful, count(*) FILTER (WHERE verdict = 'never_asked') AS never_asked,
         count(*) FILTER (WHERE verdict = 'unknown') AS unknown,
         percentile_cont(0.5) WITHIN GROUP (ORDER BY score) AS score_median, min(checked_at) AS oldest_check_at
    FROM analytics_special_stats WHERE run_id = %(run)s::bigint
   GROUP BY GROUPING SETS ((), (state), (state, dispensary_id), (brand), (state, brand), (category), (state, category))
), x AS (
  SELECT g.*, level IN ('all', 'all_brand', 'all_category') AS all_states, regexp_replace(level, '^all_', '') AS by,
         round(never_asked::numeric / nullif(specials - unknown, 0), 4) AS never_asked_share
    FROM g WHERE specials > 0
)
INSERT INTO analytics_special_group_stats (run_id, place, by, all_states, state, dispensary_id, brand_id, brand, category, specials, genuine, doubtful,
       never_asked, unknown, never_asked_share, score_median, oldest_check_at)
SELECT %(run)s, row_number() OVER (ORDER BY by, all_states DESC, CASE WHEN by <> 'store' THEN state END, never_asked_share DESC NULLS LAST, never_asked DESC, specials DESC, dispensary_id, brand,
                                   category),
       CASE WHEN by = 'all' THEN 'state' ELSE by END, all_states, state, dispensary_id, brand_id, brand, category, specials, genuine, doubtful, never_asked,
       unknown, never_asked_share, round(score_median::numeric, 1), oldest_check_at
  FROM x;
