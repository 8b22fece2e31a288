-- A refresh, step by step, and what keeps its runs in order.

-- name: take_lock
SELECT pg_try_advisory_lock(hashtext('analytics_refresh'));

-- name: free_lock
SELECT pg_advisory_unlock(hashtext('analytics_refresh'));

-- name: abandon_runs
-- The holder of the lock is the only one: other runs that seem to be running died.
UPDATE analytics_runs SET status = 'failed', finished_at = clock_timestamp(), error = 'the process that made it went away'
 WHERE status = 'running';

-- name: old_runs
-- Runs whose reports are no longer read: all but the newest two that are done.
SELECT id FROM analytics_runs WHERE id < coalesce((SELECT min(d.id) FROM (SELECT id FROM analytics_runs WHERE status = 'done' ORDER BY id DESC LIMIT 2) d), 0)
UNION ALL
SELECT id FROM analytics_runs WHERE status = 'failed';

-- name: prune_runs
-- The story of the last 200 runs is kept, without their figures.
DELETE FROM analytics_runs r
 WHERE r.id < (SELECT min(n.id) FROM (SELECT id FROM analytics_runs ORDER BY id DESC LIMIT 200) n)
   AND r.id NOT IN (SELECT d.id FROM (SELECT id FROM analytics_runs WHERE status = 'done' ORDER BY id DESC LIMIT 2) d);

-- name: begin_run
INSERT INTO analytics_runs (window_from, window_to)
SELECT t.at - make_interval(secs => %(window)s::double precision), t.at FROM (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS at) t
RETURNING id, started_at, window_from, window_to;

-- name: end_run
UPDATE analytics_runs
   SET status = 'done', finished_at = clock_timestamp(), seconds = extract(epoch FROM clock_timestamp() - started_at), steps = %(steps)s
 WHERE id = %(run)s AND status = 'running';

-- name: fail_run
UPDATE analytics_runs
   SET status = 'failed', finished_at = clock_timestamp(), seconds = extract(epoch FROM clock_timestamp() - started_at), steps = %(steps)s,
       error = %(error)s
 WHERE id = %(run)s AND status = 'running';

-- name: running
-- The refresh that is under way.
SELECT id, started_at FROM analytics_runs WHERE status = 'running' ORDER BY id DESC LIMIT 1;

-- name: create_attempts
-- Crawls that ended, and how.
CREATE TEMPORARY TABLE IF NOT EXISTS attempts (dispensary_id integer NOT NULL, ended_at timestamptz NOT NULL, verdict text NOT NULL);

-- name: create_crawls
-- Crawls that were taken in, those of the window and the one before it of each store: for how long of the window it was known what
-- they saw (`observed`), and for how long of it the store had been observed before (`passed`), in seconds.
CREATE TEMPORARY TABLE IF NOT EXISTS crawls (
  dispensary_id integer NOT NULL, crawled_at timestamptz NOT NULL, next_at timestamptz NOT NULL, observed double precision NOT NULL,
  passed double precision NOT NULL);

-- name: create_options
-- Options of products on a menu, and of those that left it in the time of the reports; a product without options has one row. Rows of the catalog
-- are large: they are read once for this table. `is_offered`: can be bought.
CREATE TEMPORARY TABLE IF NOT EXISTS options (
  product_id bigint NOT NULL, dispensary_id integer NOT NULL, category text, brand_name text, first_seen_at timestamptz NOT NULL,
  last_seen_at timestamptz, misses smallint NOT NULL, present boolean NOT NULL, stock_status text NOT NULL, is_first boolean NOT NULL,
  is_offered boolean NOT NULL, named boolean NOT NULL, option text NOT NULL, size_key text NOT NULL, grams double precision,
  regular double precision, effective double precision, price numeric, listed_price numeric);

-- name: create_listings
-- The products of these options, with what they were matched to.
CREATE TEMPORARY TABLE IF NOT EXISTS listings (
  product_id bigint NOT NULL, dispensary_id integer NOT NULL, canonical bigint, brand_id integer, brand text, category text,
  first_seen_at timestamptz NOT NULL, last_seen_at timestamptz, misses smallint NOT NULL, present boolean NOT NULL, stock_status text NOT NULL);

-- name: create_carried
-- How much each store has of each brand in each category. A brand has an id, or else the name that the menu writes.
CREATE TEMPORARY TABLE IF NOT EXISTS carried (
  dispensary_id integer NOT NULL, brand_id integer, brand text, category text, products integer NOT NULL, in_stock integer NOT NULL);

-- name: create_times
-- How long each product was in each stock, in observed seconds of the window.
CREATE TEMPORARY TABLE IF NOT EXISTS times (
  product_id bigint NOT NULL, dispensary_id integer NOT NULL, category text, brand text, times_out integer NOT NULL,
  in_seconds double precision NOT NULL, out_seconds double precision NOT NULL, absent_seconds double precision NOT NULL,
  unknown_seconds double precision NOT NULL);

-- name: fill_attempts
-- A task that completed succeeded where its payload was taken into the catalog. One whose payload waits for that is undecided for a day.
INSERT INTO attempts (dispensary_id, ended_at, verdict)
SELECT h.dispensary_id, h.completed_at,
       CASE WHEN h.status = 'failed' THEN 'failed'
            WHEN p.applied_at IS NOT NULL THEN 'succeeded'
            WHEN p.status IN ('quarantined', 'rejected') THEN 'quarantined'
            WHEN p.status = 'ok' AND h.completed_at > %(until)s::timestamptz - interval '1 day' THEN 'undecided'
            ELSE 'failed' END
  FROM task_history h
  LEFT JOIN raw_crawl_payloads p
    ON p.id = CASE WHEN h.status = 'completed' AND h.result ->> 'payload_id' ~ '^\d{1,18}$' THEN (h.result ->> 'payload_id')::bigint END
 WHERE h.role = ANY ('{payload_fetch,product_discovery}') AND h.status <> 'cancelled' AND h.dispensary_id IS NOT NULL
   AND h.completed_at >= %(since)s::timestamptz AND h.completed_at < %(until)s;

-- name: fill_crawls
-- A store is observed from one crawl to the next, if that comes within twice its interval: the rule of `gaps` in a product's history.
WITH c AS (
  SELECT c.dispensary_id, c.crawled_at, 2 * d.crawl_interval_hours * interval '1 hour' AS longest
    FROM store_crawls c JOIN dispensaries d ON d.id = c.dispensary_id
   WHERE c.crawled_at >= %(since)s::timestamptz AND c.crawled_at < %(until)s::timestamptz
   UNION ALL
  SELECT d.id, l.crawled_at, 2 * d.crawl_interval_hours * interval '1 hour'
    FROM dispensaries d
   CROSS JOIN LATERAL (SELECT b.crawled_at FROM store_crawls b WHERE b.dispensary_id = d.id AND b.crawled_at < %(since)s
                        ORDER BY b.crawled_at DESC LIMIT 1) l
), n AS (
  SELECT c.*, coalesce(lead(c.crawled_at) OVER (PARTITION BY c.dispensary_id ORDER BY c.crawled_at), %(until)s) AS next_at FROM c
), o AS (
  SELECT n.dispensary_id, n.crawled_at, n.next_at,
         CASE WHEN n.next_at - n.crawled_at <= n.longest
              THEN extract(epoch FROM n.next_at - greatest(n.crawled_at, %(since)s))::double precision ELSE 0 END AS observed
    FROM n
)
INSERT INTO crawls (dispensary_id, crawled_at, next_at, observed, passed)
SELECT o.dispensary_id, o.crawled_at, o.next_at, o.observed,
       sum(o.observed) OVER (PARTITION BY o.dispensary_id ORDER BY o.crawled_at) - o.observed
  FROM o;

-- name: fill_stores
-- `scheduled` counts crawls that ended. Where the store's interval (or its schedule's, if that is longer) asks for more of them, the
-- rest were never started: they count as well, except one, since crawls do not run exactly on the minute.
WITH a AS (
  SELECT dispensary_id, count(*) FILTER (WHERE verdict = 'succeeded') AS succeeded, count(*) FILTER (WHERE verdict = 'failed') AS failed,
         count(*) FILTER (WHERE verdict = 'quarantined') AS quarantined, count(*) FILTER (WHERE verdict = 'undecided') AS undecided
    FROM attempts WHERE ended_at >= %(since)s::timestamptz GROUP BY dispensary_id
), o AS (
  SELECT dispensary_id, sum(observed) AS observed FROM crawls GROUP BY dispensary_id
), s AS (
  SELECT d.id, min(t.interval_hours) AS hours, min(t.created_at) AS since
    FROM dispensaries d
    JOIN task_schedules t ON t.enabled AND t.role = 'payload_fetch' AND t.platform = d.platform
                         AND (t.state_code IS NULL OR t.state_code = d.state)
   WHERE d.crawl_enabled AND d.platform_dispensary_id IS NOT NULL
   GROUP BY d.id
), n AS (
  SELECT d.id, s.id IS NOT NULL AS is_scheduled,
         coalesce(a.succeeded, 0) AS succeeded, coalesce(a.failed, 0) AS failed, coalesce(a.quarantined, 0) AS quarantined,
         coalesce(a.undecided, 0) AS undecided, coalesce(o.observed, 0) AS observed,
         CASE WHEN s.id IS NOT NULL
              THEN greatest(0, floor(extract(epoch FROM %(until)s::timestamptz - greatest(%(since)s, d.created_at, s.since)) / 3600
                                     / greatest(d.crawl_interval_hours, s.hours)) - 1) ELSE 0 END::integer AS wanted
    FROM dispensaries d LEFT JOIN a ON a.dispensary_id = d.id LEFT JOIN o ON o.dispensary_id = d.id LEFT JOIN s ON s.id = d.id
)
INSERT INTO analytics_store_stats (run_id, dispensary_id, platform, name, state, crawl_enabled, interval_hours, is_scheduled, last_crawled_at, is_stale,
       is_partial, products, scheduled, succeeded, failed, quarantined, never_begun, undecided, observed_seconds)
SELECT %(run)s::bigint, d.id, d.platform, d.name, d.state, d.crawl_enabled, d.crawl_interval_hours, n.is_scheduled, d.last_crawled_at,
       d.last_crawled_at IS NULL OR %(until)s - d.last_crawled_at > 2 * d.crawl_interval_hours * interval '1 hour',
       y.id IS NOT NULL, CASE WHEN d.last_crawled_at IS NOT NULL THEN d.product_count END,
       e.ended + e.never_begun, n.succeeded, n.failed, n.quarantined, e.never_begun, n.undecided, n.observed
  FROM dispensaries d JOIN n ON n.id = d.id
  LEFT JOIN raw_crawl_payloads y ON y.id = d.last_payload_id AND y.is_partial
 CROSS JOIN LATERAL (
    SELECT n.succeeded + n.failed + n.quarantined AS ended,
           greatest(0, n.wanted - n.succeeded - n.failed - n.quarantined - n.undecided) AS never_begun) e;

-- name: fill_options
-- What can be bought: of products that were in their store's last crawl and are not out of stock, the options that are not. The regular
-- price is that of the menu which the effective one is of: the recreational, where the option has a price there.
INSERT INTO options (product_id, dispensary_id, category, brand_name, first_seen_at, last_seen_at, misses, present, stock_status, is_first, is_offered, named,
       option, size_key, grams, regular, effective, price, listed_price)
SELECT p.id, p.dispensary_id, p.category_canon, p.brand_name, p.first_seen_at, p.last_seen_at, p.consecutive_misses, p.present, p.stock_status,
       coalesce(v.n, 1) = 1, v.n IS NOT NULL AND p.last_seen_at IS NULL AND p.stock_status <> 'oos' AND v.stock_status IS DISTINCT FROM 'oos',
       coalesce(jsonb_array_length(p.specials) > 0, false), coalesce(v.option, ''), size_key(v.weight_g, v.content_mg, v.pieces, v.option),
       nullif(v.weight_g, 0),
       nullif(CASE WHEN v.price_rec IS NULL AND v.special_rec IS NULL THEN v.price_med ELSE v.price_rec END, 0)::double precision,
       nullif(coalesce(v.special_rec, v.price_rec, v.special_med, v.price_med), 0)::double precision,
       effective_price(v.price_rec, v.special_rec, v.price_med, v.special_med), coalesce(v.price_rec, v.price_med)
  FROM catalog_products p
  LEFT JOIN LATERAL ROWS FROM (
         jsonb_to_recordset(CASE WHEN p.last_seen_at IS NULL OR (p.consecutive_misses = 3 AND p.last_seen_at > %(until)s::timestamptz - interval '90 days')
                                 THEN p.variants ELSE '[]' END)
           AS (stock_status text, weight_g double precision, price_rec numeric, special_rec numeric, price_med numeric, special_med numeric,
               content_mg numeric, pieces integer, option text)) WITH ORDINALITY
       v(stock_status, weight_g, price_rec, special_rec, price_med, special_med, content_mg, pieces, option, n) ON true
 WHERE p.last_seen_at IS NULL OR p.last_seen_at >= least(%(days)s::timestamptz, %(until)s - interval '90 days');

-- name: fill_listings
INSERT INTO listings (product_id, dispensary_id, canonical, brand_id, brand, category, first_seen_at, last_seen_at, misses, present, stock_status)
SELECT o.product_id, o.dispensary_id, i.canonical_product_id, i.brand_id, coalesce(b.name, o.brand_name), o.category, o.first_seen_at, o.last_seen_at,
       o.misses, o.present, o.stock_status
  FROM options o
  LEFT JOIN product_identities i ON i.product_id = o.product_id
  LEFT JOIN brands b ON b.id = i.brand_id
 WHERE o.is_first;

-- piece: is_plausible
u.per_gram IS NULL OR o.effective / o.grams BETWEEN u.per_gram / %(factor)s::double precision AND u.per_gram * %(factor)s

-- name: fill_prices
-- All states together are one group by currency. `u` is what a gram usually costs: the median of the category and currency in all states.
WITH u AS (
  SELECT currency_of(s.state) AS currency, o.category, percentile_cont(0.5) WITHIN GROUP (ORDER BY o.effective / o.grams) AS per_gram
    FROM options o JOIN analytics_store_stats s ON s.run_id = %(run)s::bigint AND s.dispensary_id = o.dispensary_id
   WHERE o.is_offered AND o.grams > 0 AND o.effective > 0 AND o.category = ANY (%(weighed)s::text[])
   GROUP BY 1, 2 HAVING count(*) >= %(least)s::bigint
), g AS (
  SELECT o.dispensary_id, s.state, currency_of(s.state) AS currency, o.category,
         count(DISTINCT o.product_id) FILTER (WHERE o.grams > 0 AND o.effective > 0 AND ({is_plausible})) AS products,
         count(*) FILTER (WHERE o.grams > 0 AND o.effective > 0 AND ({is_plausible})) AS options,
         count(*) FILTER (WHERE o.grams IS NULL) AS without_weight,
         count(*) FILTER (WHERE o.grams > 0 AND o.effective IS NULL) AS without_price,
         count(*) FILTER (WHERE o.grams > 0 AND o.effective > 0 AND NOT ({is_plausible})) AS implausible
    FROM options o JOIN analytics_store_stats s ON s.run_id = %(run)s AND s.dispensary_id = o.dispensary_id
    LEFT JOIN u ON u.currency = currency_of(s.state) AND u.category = o.category
   WHERE o.is_offered GROUP BY o.dispensary_id, s.state, o.category
), c AS (
  SELECT grouping(g.state) = 1 AS all_states, g.state, g.currency, g.category, sum(g.products) AS products, sum(g.options) AS options,
         sum(g.without_weight) AS without_weight, sum(g.without_price) AS without_price,
         sum(g.implausible) AS implausible, count(*) FILTER (WHERE g.options > 0) AS stores, count(*) FILTER (WHERE g.options > 0 AND s.is_stale) AS stale_stores,
         count(*) FILTER (WHERE g.options > 0 AND s.is_partial) AS partial,
         coalesce(sum(s.scheduled) FILTER (WHERE g.options > 0), 0) AS scheduled,
         coalesce(sum(s.succeeded) FILTER (WHERE g.options > 0), 0) AS succeeded,
         min(s.last_crawled_at) FILTER (WHERE g.options > 0) AS oldest_crawl_at
    FROM g JOIN analytics_store_stats s ON s.run_id = %(run)s AND s.dispensary_id = g.dispensary_id
   GROUP BY GROUPING SETS ((g.currency, g.category), (g.currency, g.state, g.category))
), x AS (
  SELECT grouping(s.state) = 1 AS all_states, s.state, currency_of(s.state) AS currency, o.category,
         count(o.regular) AS regular_n,
         percentile_cont('{0.1,0.5,0.9}'::double precision[]) WITHIN GROUP (ORDER BY o.regular / o.grams) AS regular,
         avg(o.regular / o.grams) AS regular_mean, count(o.effective) AS effective_n,
         percentile_cont('{0.1,0.5,0.9}'::double precision[]) WITHIN GROUP (ORDER BY o.effective / o.grams) AS effective,
         avg(o.effective / o.grams) AS effective_mean
    FROM options o JOIN analytics_store_stats s ON s.run_id = %(run)s AND s.dispensary_id = o.dispensary_id
    LEFT JOIN u ON u.currency = currency_of(s.state) AND u.category = o.category
   WHERE o.is_offered AND o.grams > 0 AND o.effective > 0 AND ({is_plausible})
   GROUP BY GROUPING SETS ((currency_of(s.state), o.category), (currency_of(s.state), s.state, o.category))
), k AS (
  SELECT grouping(state) = 1 AS all_states, state, currency_of(state) AS currency, count(*) AS known
    FROM analytics_store_stats WHERE run_id = %(run)s GROUP BY GROUPING SETS ((currency_of(state)), (currency_of(state), state))
)
INSERT INTO analytics_price_stats (run_id, place, all_states, state, currency, category, products, options, without_weight, without_price, implausible,
       regular_n, regular_p10, regular_median, regular_p90, regular_mean, effective_n, effective_p10, effective_median, effective_p90, effective_mean, stores, stale_stores, partial,
       known_stores, scheduled, succeeded, oldest_crawl_at)
SELECT %(run)s, row_number() OVER (ORDER BY c.all_states DESC, c.state, c.currency DESC, c.category), c.all_states, c.state, c.currency, c.category, c.products, c.options,
       c.without_weight, c.without_price, c.implausible,
       coalesce(x.regular_n, 0), round(x.regular[1]::numeric, 4), round(x.regular[2]::numeric, 4), round(x.regular[3]::numeric, 4),
       round(x.regular_mean::numeric, 4),
       coalesce(x.effective_n, 0), round(x.effective[1]::numeric, 4), round(x.effective[2]::numeric, 4), round(x.effective[3]::numeric, 4),
       round(x.effective_mean::numeric, 4),
       c.stores, c.stale_stores, c.partial, k.known, c.scheduled, c.succeeded, c.oldest_crawl_at
  FROM c
  LEFT JOIN x ON x.all_states = c.all_states AND x.state IS NOT DISTINCT FROM c.state AND x.currency = c.currency
             AND x.category IS NOT DISTINCT FROM c.category
  JOIN k ON k.all_states = c.all_states AND k.state IS NOT DISTINCT FROM c.state AND k.currency = c.currency;

-- name: fill_discounts
WITH p AS (
  SELECT o.product_id, o.dispensary_id, o.category, max(1 - o.effective / o.regular) FILTER (WHERE o.effective < o.regular) AS depth,
         bool_or(o.named) AS named
    FROM options o WHERE o.is_offered AND o.regular > 0 AND o.effective > 0 GROUP BY o.product_id, o.dispensary_id, o.category
), x AS (
  SELECT grouping(s.state) = 1 AS all_states, s.state, grouping(p.category) = 1 AS all_categories, p.category, count(*) AS products,
         count(p.depth) AS on_special, count(*) FILTER (WHERE p.depth IS NULL AND p.named) AS named_only,
         percentile_cont('{0.5,0.9}'::double precision[]) WITHIN GROUP (ORDER BY p.depth) AS depth, avg(p.depth) AS depth_mean
    FROM p JOIN analytics_store_stats s ON s.run_id = %(run)s::bigint AND s.dispensary_id = p.dispensary_id
   GROUP BY GROUPING SETS ((), (p.category), (s.state), (s.state, p.category))
), g AS (
  SELECT DISTINCT p.dispensary_id, p.category FROM p
), c AS (
  -- A store counts once in each group, however many of its categories are in it.
  SELECT grouping(s.state) = 1 AS all_states, s.state, false AS all_categories, g.category, count(*) AS stores,
         count(*) FILTER (WHERE s.is_stale) AS stale_stores, count(*) FILTER (WHERE s.is_partial) AS partial, sum(s.scheduled) AS scheduled, sum(s.succeeded) AS succeeded,
         min(s.last_crawled_at) AS oldest_crawl_at
    FROM g JOIN analytics_store_stats s ON s.run_id = %(run)s AND s.dispensary_id = g.dispensary_id
   GROUP BY GROUPING SETS ((g.category), (s.state, g.category))
   UNION ALL
  SELECT grouping(s.state) = 1, s.state, true, NULL, count(*), count(*) FILTER (WHERE s.is_stale),
         count(*) FILTER (WHERE s.is_partial), sum(s.scheduled), sum(s.succeeded), min(s.last_crawled_at)
    FROM analytics_store_stats s WHERE s.run_id = %(run)s AND s.dispensary_id IN (SELECT g.dispensary_id FROM g)
   GROUP BY GROUPING SETS ((), (s.state))
), k AS (
  SELECT grouping(state) = 1 AS all_states, state, count(*) AS known FROM analytics_store_stats WHERE run_id = %(run)s GROUP BY GROUPING SETS ((), (state))
)
INSERT INTO analytics_discount_stats (run_id, place, all_states, state, all_categories, category, products, on_special, named_only, depth_median, depth_p90,
       depth_mean, stores, stale_stores, partial, known_stores, scheduled, succeeded, oldest_crawl_at)
SELECT %(run)s, row_number() OVER (ORDER BY x.all_states DESC, x.state, x.all_categories DESC, x.category), x.all_states, x.state, x.all_categories,
       x.category, x.products, x.on_special, x.named_only, round(x.depth[1]::numeric, 4), round(x.depth[2]::numeric, 4),
       round(x.depth_mean::numeric, 4), c.stores, c.stale_stores, c.partial, k.known, c.scheduled, c.succeeded, c.oldest_crawl_at
  FROM x
  JOIN c ON c.all_states = x.all_states AND c.all_categories = x.all_categories AND c.state IS NOT DISTINCT FROM x.state
        AND c.category IS NOT DISTINCT FROM x.category
  JOIN k ON k.all_states = x.all_states AND k.state IS NOT DISTINCT FROM x.state
 WHERE x.products > 0;

-- name: fill_carried
-- A product that is not matched yet has the brand of its name, if one is called so.
WITH named AS (SELECT lower(b.name) AS name, min(live_brand(b.id)) AS id FROM brands b GROUP BY lower(b.name) HAVING count(DISTINCT live_brand(b.id)) = 1)
INSERT INTO carried (dispensary_id, brand_id, brand, category, products, in_stock)
SELECT g.dispensary_id, coalesce(g.brand_id, n.id), CASE WHEN g.brand_id IS NULL AND n.id IS NULL THEN g.brand_name END, g.category,
       sum(g.products), sum(g.in_stock)
  FROM (SELECT l.dispensary_id, l.brand_id, CASE WHEN l.brand_id IS NULL THEN l.brand END AS brand_name, l.category, count(*) AS products,
               count(*) FILTER (WHERE l.stock_status = 'in_stock') AS in_stock
          FROM listings l WHERE l.last_seen_at IS NULL GROUP BY 1, 2, 3, 4) g
  LEFT JOIN named n ON n.name = lower(g.brand_name)
 GROUP BY 1, 2, 3, 4;

-- piece: of_menus
whole AS (
  SELECT grouping(s.state) = 1 AS all_states, s.state, sum(c.products) AS of_products, count(DISTINCT c.dispensary_id) AS of_stores
    FROM carried c JOIN analytics_store_stats s ON s.run_id = %(run)s AND s.dispensary_id = c.dispensary_id GROUP BY GROUPING SETS ((), (s.state))
), k AS (
  SELECT grouping(state) = 1 AS all_states, state, count(*) AS known FROM analytics_store_stats WHERE run_id = %(run)s GROUP BY GROUPING SETS ((), (state))
)

-- name: fill_brands
-- Canonical brands; of products that are not matched, spellings that differ in case alone are one brand, shown as most products have it.
WITH spelled AS (
  SELECT DISTINCT ON (lower(brand)) lower(brand) AS key, brand FROM carried WHERE brand IS NOT NULL
   GROUP BY brand ORDER BY lower(brand), sum(products) DESC, brand
), g AS (
  SELECT c.dispensary_id, c.brand_id, lower(c.brand) AS key, sum(c.products) AS products, sum(c.in_stock) AS in_stock
    FROM carried c GROUP BY c.dispensary_id, c.brand_id, lower(c.brand)
), x AS (
  SELECT grouping(s.state) = 1 AS all_states, s.state, g.brand_id, g.key, sum(g.products) AS products, sum(g.in_stock) AS in_stock, count(*) AS stores,
         count(*) FILTER (WHERE s.is_stale) AS stale_stores, count(*) FILTER (WHERE s.is_partial) AS partial, sum(s.scheduled) AS scheduled, sum(s.succeeded) AS succeeded,
         min(s.last_crawled_at) AS oldest_crawl_at
    FROM g JOIN analytics_store_stats s ON s.run_id = %(run)s::bigint AND s.dispensary_id = g.dispensary_id
   GROUP BY GROUPING SETS ((g.brand_id, g.key), (s.state, g.brand_id, g.key))
), {of_menus}
INSERT INTO analytics_brand_stats (run_id, place, all_states, state, brand, brand_id, products, in_stock, of_products, of_stores, stores, stale_stores, partial,
       known_stores, scheduled, succeeded, oldest_crawl_at)
SELECT %(run)s, row_number() OVER (ORDER BY x.all_states DESC, x.state, x.products DESC, x.key, x.brand_id), x.all_states, x.state,
       coalesce(b.name, n.brand), x.brand_id, x.products, x.in_stock, w.of_products, w.of_stores, x.stores, x.stale_stores, x.partial, k.known, x.scheduled,
       x.succeeded, x.oldest_crawl_at
  FROM x LEFT JOIN spelled n ON n.key = x.key LEFT JOIN brands b ON b.id = x.brand_id
  JOIN whole w ON w.all_states = x.all_states AND w.state IS NOT DISTINCT FROM x.state
  JOIN k ON k.all_states = x.all_states AND k.state IS NOT DISTINCT FROM x.state;

-- name: fill_categories
WITH g AS (
  SELECT c.dispensary_id, c.category, sum(c.products) AS products, sum(c.in_stock) AS in_stock FROM carried c GROUP BY c.dispensary_id, c.category
), x AS (
  SELECT grouping(s.state) = 1 AS all_states, s.state, g.category, sum(g.products) AS products, sum(g.in_stock) AS in_stock, count(*) AS stores,
         count(*) FILTER (WHERE s.is_stale) AS stale_stores, count(*) FILTER (WHERE s.is_partial) AS partial, sum(s.scheduled) AS scheduled, sum(s.succeeded) AS succeeded,
         min(s.last_crawled_at) AS oldest_crawl_at
    FROM g JOIN analytics_store_stats s ON s.run_id = %(run)s::bigint AND s.dispensary_id = g.dispensary_id
   GROUP BY GROUPING SETS ((g.category), (s.state, g.category))
), {of_menus}
INSERT INTO analytics_category_stats (run_id, place, all_states, state, category, products, in_stock, of_products, of_stores, stores, stale_stores, partial,
       known_stores, scheduled, succeeded, oldest_crawl_at)
SELECT %(run)s, row_number() OVER (ORDER BY x.all_states DESC, x.state, x.products DESC, x.category), x.all_states, x.state, x.category, x.products,
       x.in_stock, w.of_products, w.of_stores, x.stores, x.stale_stores, x.partial, k.known, x.scheduled, x.succeeded, x.oldest_crawl_at
  FROM x
  JOIN whole w ON w.all_states = x.all_states AND w.state IS NOT DISTINCT FROM x.state
  JOIN k ON k.all_states = x.all_states AND k.state IS NOT DISTINCT FROM x.state;

-- name: fill_times
-- The time of a product begins with the window, or with the crawl that first saw it, and ends with the window, or with the last crawl
-- that saw it: what it is after that is not known, and called absent. States that ended in the window follow each other without a gap,
-- the first from the beginning of the product's time; the one that held at the window's end is the rest. Within a state the product was
-- seen until `seen`. Products of which the window knows nothing but that they were absent are left out.
WITH whole AS (
  SELECT dispensary_id, sum(observed) AS seconds, max(crawled_at) AS last_at FROM crawls GROUP BY dispensary_id
), held AS (
  -- What held at the window's end of products that a later crawl has changed since.
  SELECT DISTINCT ON (s.product_id) s.product_id, s.stock_status, s.present,
         CASE WHEN s.present THEN s.seen_to
              ELSE coalesce((SELECT b.seen_to FROM product_history b WHERE b.product_id = s.product_id AND b.ended_at = s.seen_from), %(since)s)
          END AS seen_to
    FROM product_history s WHERE s.ended_at >= %(until)s::timestamptz AND s.seen_from < %(until)s
   ORDER BY s.product_id, s.ended_at
), c AS (
  SELECT p.product_id AS id, p.dispensary_id, p.category, p.brand, p.first_seen_at, w.seconds AS whole,
         coalesce(h.stock_status, p.stock_status) AS stock_status, coalesce(h.present, p.present) AS present,
         CASE WHEN h.product_id IS NULL THEN coalesce(p.last_seen_at, 'infinity') ELSE h.seen_to END AS seen_to, w.last_at
    FROM listings p
    JOIN whole w ON w.dispensary_id = p.dispensary_id
    LEFT JOIN held h ON h.product_id = p.product_id
), p AS (
  SELECT c.*, CASE WHEN c.first_seen_at > %(since)s::timestamptz THEN f.passed ELSE 0 END AS starts,
         CASE WHEN c.seen_to >= c.last_at THEN c.whole WHEN c.seen_to > %(since)s THEN l.passed ELSE 0 END AS ends
    FROM c
    LEFT JOIN crawls f ON f.dispensary_id = c.dispensary_id AND f.crawled_at = c.first_seen_at
    LEFT JOIN crawls l ON l.dispensary_id = c.dispensary_id AND l.crawled_at = c.seen_to
), s AS (
  SELECT s.product_id, CASE WHEN s.present THEN s.stock_status ELSE 'absent' END AS stock, s.stock_status = 'oos' AS is_oos,
         lag(e.passed) OVER w AS starts, e.passed AS ends,
         CASE WHEN l.next_at = s.ended_at THEN e.passed ELSE coalesce(l.passed, 0) END AS seen,
         lag(s.stock_status) OVER w <> 'oos' AND s.stock_status = 'oos' AND s.present AS went_out
    FROM product_history s
    JOIN crawls e ON e.dispensary_id = s.dispensary_id AND e.crawled_at = s.ended_at
    LEFT JOIN crawls l ON l.dispensary_id = s.dispensary_id AND l.crawled_at = s.seen_to
   WHERE s.ended_at >= %(since)s AND s.ended_at < %(until)s::timestamptz
  WINDOW w AS (PARTITION BY s.product_id ORDER BY s.ended_at)
), sums AS (
  SELECT product_id, count(*) FILTER (WHERE went_out) AS times_out, max(ends) AS ends, max(stock) FILTER (WHERE starts IS NULL) AS first_stock,
         max(seen) FILTER (WHERE starts IS NULL) AS first_seen,
         (array_agg(is_oos ORDER BY ends DESC))[1] AS last_is_oos,
         coalesce(sum(greatest(0, seen - coalesce(starts, 0))) FILTER (WHERE stock = 'in_stock'), 0) AS i,
         coalesce(sum(greatest(0, seen - coalesce(starts, 0))) FILTER (WHERE stock = 'oos'), 0) AS o,
         coalesce(sum(greatest(0, seen - coalesce(starts, 0))) FILTER (WHERE stock = 'unknown'), 0) AS u
    FROM s GROUP BY product_id
), t AS (
  SELECT p.*, s.first_stock, least(p.starts, s.first_seen) AS before, coalesce(s.i, 0) AS i, coalesce(s.o, 0) AS o, coalesce(s.u, 0) AS u,
         CASE WHEN p.present THEN greatest(0, p.ends - coalesce(s.ends, p.starts)) ELSE 0 END AS rest,
         coalesce(s.times_out, 0) + (p.stock_status = 'oos' AND p.present AND NOT s.last_is_oos IS TRUE AND s.product_id IS NOT NULL)::integer
           AS times_out
    FROM p LEFT JOIN sums s ON s.product_id = p.id
   WHERE p.ends > p.starts
), n AS (
  SELECT t.*, t.i + CASE WHEN t.stock_status = 'in_stock' THEN t.rest ELSE 0 END - CASE WHEN t.first_stock = 'in_stock' THEN t.before ELSE 0 END AS in_seconds,
         t.o + CASE WHEN t.stock_status = 'oos' THEN t.rest ELSE 0 END - CASE WHEN t.first_stock = 'oos' THEN t.before ELSE 0 END AS out_seconds,
         t.u + CASE WHEN t.stock_status = 'unknown' THEN t.rest ELSE 0 END - CASE WHEN t.first_stock = 'unknown' THEN t.before ELSE 0 END AS unknown_seconds
    FROM t
)
INSERT INTO times (product_id, dispensary_id, category, brand, times_out, in_seconds, out_seconds, absent_seconds, unknown_seconds)
SELECT n.id, n.dispensary_id, n.category, n.brand, n.times_out, n.in_seconds, n.out_seconds,
       n.whole - n.starts - n.in_seconds - n.out_seconds - n.unknown_seconds, n.unknown_seconds
  FROM n
 WHERE n.in_seconds + n.out_seconds + n.unknown_seconds > 0.001;  -- what sums of fractions leave over is less

-- name: fill_stock
WITH g AS (
  SELECT t.dispensary_id, t.category, count(*) AS products, count(*) FILTER (WHERE t.out_seconds >= 1) AS out_products, sum(t.in_seconds) AS i,
         sum(t.out_seconds) AS o, sum(t.absent_seconds) AS a, sum(t.unknown_seconds) AS u
    FROM times t GROUP BY t.dispensary_id, t.category
), x AS (
  SELECT CASE grouping(s.state, s.dispensary_id, g.category) WHEN 7 THEN 'all' WHEN 6 THEN 'category' WHEN 3 THEN 'state'
              WHEN 2 THEN 'state_category' WHEN 1 THEN 'store' ELSE 'store_category' END AS level,
         s.state, g.category, s.dispensary_id, sum(g.products) AS products, sum(g.out_products) AS out_products,
         sum(g.i) AS in_seconds, sum(g.o) AS out_seconds, sum(g.a) AS absent_seconds, sum(g.u) AS unknown_seconds
    FROM g JOIN analytics_store_stats s ON s.run_id = %(run)s::bigint AND s.dispensary_id = g.dispensary_id
   GROUP BY GROUPING SETS ((), (g.category), (s.state), (s.state, g.category), (s.state, s.dispensary_id), (s.state, s.dispensary_id, g.category))
), c AS (
  SELECT CASE WHEN grouping(s.state) = 1 THEN 'category' ELSE 'state_category' END AS level, s.state, g.category, count(*) AS stores,
         count(*) FILTER (WHERE s.is_stale) AS stale_stores, count(*) FILTER (WHERE s.is_partial) AS partial, sum(s.scheduled) AS scheduled, sum(s.succeeded) AS succeeded,
         min(s.last_crawled_at) AS oldest_crawl_at
    FROM g JOIN analytics_store_stats s ON s.run_id = %(run)s AND s.dispensary_id = g.dispensary_id
   GROUP BY GROUPING SETS ((g.category), (s.state, g.category))
   UNION ALL
  SELECT CASE WHEN grouping(s.state) = 1 THEN 'all' ELSE 'state' END, s.state, NULL, count(*), count(*) FILTER (WHERE s.is_stale),
         count(*) FILTER (WHERE s.is_partial), sum(s.scheduled), sum(s.succeeded), min(s.last_crawled_at)
    FROM analytics_store_stats s WHERE s.run_id = %(run)s AND s.dispensary_id IN (SELECT g.dispensary_id FROM g)
   GROUP BY GROUPING SETS ((), (s.state))
), k AS (
  SELECT grouping(state) = 1 AS all_states, state, count(*) AS known FROM analytics_store_stats WHERE run_id = %(run)s GROUP BY GROUPING SETS ((), (state))
)
INSERT INTO analytics_stock_stats (run_id, place, level, state, category, dispensary_id, products, out_products, in_seconds, out_seconds, absent_seconds,
       unknown_seconds, stores, stale_stores, partial, known_stores, scheduled, succeeded, oldest_crawl_at)
SELECT %(run)s, row_number() OVER (ORDER BY x.level, x.state, x.dispensary_id, x.category), x.level, x.state, x.category, x.dispensary_id, x.products,
       x.out_products, x.in_seconds, x.out_seconds, x.absent_seconds, x.unknown_seconds,
       coalesce(c.stores, 1), coalesce(c.stale_stores, s.is_stale::integer), coalesce(c.partial, s.is_partial::integer), coalesce(k.known, 1), coalesce(c.scheduled, s.scheduled),
       coalesce(c.succeeded, s.succeeded), coalesce(c.oldest_crawl_at, s.last_crawled_at)
  FROM x
  LEFT JOIN c ON c.level = x.level AND c.state IS NOT DISTINCT FROM x.state AND c.category IS NOT DISTINCT FROM x.category
  LEFT JOIN k ON x.dispensary_id IS NULL AND k.all_states = (x.level IN ('all', 'category')) AND k.state IS NOT DISTINCT FROM x.state
  LEFT JOIN analytics_store_stats s ON s.run_id = %(run)s AND s.dispensary_id = x.dispensary_id
 WHERE x.products > 0;

-- name: fill_out_products
INSERT INTO analytics_out_product_stats (run_id, place, product_id, dispensary_id, state, category, brand, times_out, in_seconds, out_seconds,
       absent_seconds, unknown_seconds)
SELECT %(run)s::bigint, row_number() OVER (ORDER BY t.out_seconds DESC, t.product_id), t.product_id, t.dispensary_id, s.state, t.category, t.brand,
       t.times_out, t.in_seconds, t.out_seconds, t.absent_seconds, t.unknown_seconds
  FROM times t JOIN analytics_store_stats s ON s.run_id = %(run)s AND s.dispensary_id = t.dispensary_id
 WHERE t.out_seconds >= 1;

-- name: fill_days
-- `days` is the first of them, at midnight. What a store had when it was first crawled is not new.
WITH happened AS (
  SELECT p.dispensary_id, (p.first_seen_at AT TIME ZONE 'UTC')::date AS day, 1 AS new, 0 AS gone, 0 AS returned, 0 AS prices, 0 AS stock,
         0 AS crawls, 0 AS partial, 0 AS scheduled, 0 AS succeeded
    FROM listings p JOIN dispensaries d ON d.id = p.dispensary_id
   WHERE p.first_seen_at >= %(days)s::timestamptz AND p.first_seen_at < %(until)s::timestamptz AND p.first_seen_at > d.first_crawled_at
   UNION ALL
  SELECT p.dispensary_id, (p.last_seen_at AT TIME ZONE 'UTC')::date, 0, 1, 0, 0, 0, 0, 0, 0, 0
    FROM listings p WHERE p.misses = 3 AND p.last_seen_at >= %(days)s AND p.last_seen_at < %(until)s
   UNION ALL
  SELECT c.dispensary_id, (c.crawled_at AT TIME ZONE 'UTC')::date, 0, 0, c.returned, c.price_changes, c.stock_changes, 1,
         (y.id IS NOT NULL)::integer, 0, 0
    FROM store_crawls c LEFT JOIN raw_crawl_payloads y ON y.id = c.payload_id AND y.is_partial
   WHERE c.crawled_at >= %(days)s AND c.crawled_at < %(until)s
   UNION ALL
  SELECT a.dispensary_id, (a.ended_at AT TIME ZONE 'UTC')::date, 0, 0, 0, 0, 0, 0, 0, (a.verdict <> 'undecided')::integer,
         (a.verdict = 'succeeded')::integer
    FROM attempts a WHERE a.ended_at >= %(days)s
)
INSERT INTO analytics_daily_stats (run_id, day, dispensary_id, state, new_products, gone_products, returned, price_changes, stock_changes, crawls, partial,
       scheduled, succeeded)
SELECT %(run)s::bigint, h.day, h.dispensary_id, s.state, sum(h.new), sum(h.gone), sum(h.returned), sum(h.prices), sum(h.stock), sum(h.crawls),
       sum(h.partial), sum(h.scheduled), sum(h.succeeded)
  FROM happened h JOIN analytics_store_stats s ON s.run_id = %(run)s AND s.dispensary_id = h.dispensary_id
 GROUP BY h.day, h.dispensary_id, s.state;
