-- Reports by canonical product and brand. A *place* is a location, or a store that is linked to none (its negative id): one shop with menus
-- on two platforms counts once, by the fresher menu that has the product.

-- name: create_places
CREATE TEMPORARY TABLE IF NOT EXISTS places (
  dispensary_id integer NOT NULL, place integer NOT NULL, state text, currency text NOT NULL, last_crawled_at timestamptz NOT NULL,
  is_stale boolean NOT NULL);

-- name: create_carriers
-- Which place has which canonical product on its menu, and whether in stock.
CREATE TEMPORARY TABLE IF NOT EXISTS carriers (canonical bigint NOT NULL, place integer NOT NULL, state text, in_stock boolean NOT NULL);

-- name: create_sellers
-- Which place has anything of a category on a menu.
CREATE TEMPORARY TABLE IF NOT EXISTS sellers (place integer NOT NULL, state text, category text);

-- name: create_sizes
CREATE TEMPORARY TABLE IF NOT EXISTS sizes (key text NOT NULL, size text NOT NULL);

-- name: create_priced
-- What a place asks for a size of a canonical product. `fault`: why the price is compared with no other one.
CREATE TEMPORARY TABLE IF NOT EXISTS priced (
  canonical bigint NOT NULL, size text NOT NULL, place integer NOT NULL, dispensary_id integer NOT NULL, state text, currency text NOT NULL,
  price numeric NOT NULL, fault text);

-- name: fill_places
-- A menu is stale as well where a newer one is in quarantine: what the store asks now is not known.
INSERT INTO places (dispensary_id, place, state, currency, last_crawled_at, is_stale)
SELECT s.dispensary_id, coalesce(k.location_id, -s.dispensary_id), coalesce(l.state, s.state), currency_of(coalesce(l.state, s.state)),
       s.last_crawled_at,
       s.is_stale OR EXISTS (SELECT FROM attempts a WHERE a.dispensary_id = s.dispensary_id AND a.verdict = 'quarantined'
                                                      AND a.ended_at > s.last_crawled_at)
  FROM analytics_store_stats s
  LEFT JOIN store_locations k ON k.dispensary_id = s.dispensary_id
  LEFT JOIN locations l ON l.id = k.location_id
 WHERE s.run_id = %(run)s::bigint AND s.last_crawled_at IS NOT NULL;

-- name: fill_carriers
INSERT INTO carriers (canonical, place, state, in_stock)
SELECT DISTINCT ON (l.canonical, w.place) l.canonical, w.place, w.state, l.stock_status <> 'oos'
  FROM listings l
  JOIN places w ON w.dispensary_id = l.dispensary_id
 WHERE l.last_seen_at IS NULL AND l.canonical IS NOT NULL
 ORDER BY l.canonical, w.place, w.last_crawled_at DESC, l.dispensary_id, l.stock_status <> 'oos' DESC;

-- name: fill_sellers
INSERT INTO sellers (place, state, category)
SELECT DISTINCT w.place, w.state, c.category
  FROM carried c JOIN places w ON w.dispensary_id = c.dispensary_id;

-- name: size_keys
-- Options on offer, by what decides their size.
SELECT DISTINCT size_key FROM options WHERE is_offered;

-- name: fill_sizes
INSERT INTO sizes (key, size) SELECT * FROM unnest(%(keys)s::text[], %(sizes)s::text[]);

-- name: fill_priced
WITH p AS (
  SELECT DISTINCT ON (l.canonical, z.size, w.place) l.canonical, z.size, w.place, w.dispensary_id, w.state, w.currency, w.is_stale, o.price
    FROM options o
    JOIN sizes z ON z.key = o.size_key
    JOIN listings l ON l.product_id = o.product_id AND l.canonical IS NOT NULL
    JOIN places w ON w.dispensary_id = o.dispensary_id
   WHERE o.is_offered AND o.price > 0
   ORDER BY l.canonical, z.size, w.place, w.last_crawled_at DESC, o.dispensary_id, o.price
), m AS (
  SELECT canonical, size, currency, percentile_cont(0.5) WITHIN GROUP (ORDER BY price::double precision) AS median
    FROM p WHERE NOT is_stale GROUP BY canonical, size, currency HAVING count(*) >= 3
)
INSERT INTO priced (canonical, size, place, dispensary_id, state, currency, price, fault)
SELECT p.canonical, p.size, p.place, p.dispensary_id, p.state, p.currency, p.price,
       CASE WHEN p.is_stale THEN 'stale'
            WHEN p.price * %(implausible)s::integer < m.median OR p.price > m.median * %(implausible)s THEN 'implausible' END
  FROM p LEFT JOIN m ON m.canonical = p.canonical AND m.size = p.size AND m.currency = p.currency;

-- piece: bases
-- Places with a menu, and with a menu that has the category.
bases AS (
  SELECT grouping(state) = 1 AS all_states, state, grouping(category) = 1 AS all_categories, category, count(DISTINCT place) AS n
    FROM sellers GROUP BY GROUPING SETS ((), (state), (category), (state, category))
)

-- name: fill_distribution
-- Products of one place are left out: there is nothing to tell of them.
WITH x AS (
  SELECT grouping(state) = 1 AS all_states, state, canonical, count(*) AS locations, count(*) FILTER (WHERE in_stock) AS in_stock
    FROM carriers GROUP BY GROUPING SETS ((canonical), (state, canonical))
), {bases}
INSERT INTO analytics_distribution_stats (run_id, place, all_states, state, canonical_product_id, brand_id, category, locations, in_stock, of_locations,
       of_category)
SELECT %(run)s::bigint, row_number() OVER (ORDER BY x.all_states DESC, x.state, x.in_stock DESC, x.locations DESC, x.canonical), x.all_states, x.state,
       x.canonical, c.brand_id, c.category, x.locations, x.in_stock, s.n, k.n
  FROM x
  JOIN canonical_product_brands c ON c.canonical_product_id = x.canonical
  JOIN bases s ON s.all_categories AND s.all_states = x.all_states AND s.state IS NOT DISTINCT FROM x.state
  LEFT JOIN bases k ON NOT k.all_categories AND k.category = c.category AND k.all_states = x.all_states AND k.state IS NOT DISTINCT FROM x.state
 WHERE x.canonical IN (SELECT t.canonical FROM x t WHERE t.all_states AND t.locations > 1);

-- name: fill_brand_distribution
WITH g AS (
  SELECT c.brand_id, c.category, r.place, r.state, bool_or(r.in_stock) AS in_stock, count(*) AS products
    FROM carriers r JOIN canonical_product_brands c ON c.canonical_product_id = r.canonical
   WHERE c.brand_id IS NOT NULL
   GROUP BY c.brand_id, c.category, r.place, r.state
), x AS (
  SELECT grouping(state) = 1 AS all_states, state, brand_id, grouping(category) = 1 AS all_categories, category, count(DISTINCT place) AS locations,
         count(DISTINCT place) FILTER (WHERE in_stock) AS in_stock, sum(products) AS listed
    FROM g GROUP BY GROUPING SETS ((brand_id), (brand_id, category), (state, brand_id), (state, brand_id, category))
), {bases}
INSERT INTO analytics_brand_distribution_stats (run_id, place, all_states, state, brand_id, all_categories, category, locations, in_stock, listed,
       of_locations, of_category)
SELECT %(run)s::bigint, row_number() OVER (ORDER BY x.all_states DESC, x.state, x.all_categories DESC, x.category, x.in_stock DESC, x.locations DESC,
       x.brand_id), x.all_states, x.state, x.brand_id, x.all_categories, x.category, x.locations, x.in_stock, x.listed, s.n, k.n
  FROM x
  JOIN bases s ON s.all_categories AND s.all_states = x.all_states AND s.state IS NOT DISTINCT FROM x.state
  LEFT JOIN bases k ON NOT k.all_categories AND NOT x.all_categories AND k.category = x.category AND k.all_states = x.all_states
        AND k.state IS NOT DISTINCT FROM x.state;

-- name: fill_dispersion
-- Of prices of one size at three places at least, without those that have a fault. All states together are one group by currency.
WITH x AS (
  SELECT grouping(state) = 1 AS all_states, state, currency, canonical, size, count(*) FILTER (WHERE fault IS NULL) AS locations,
         count(*) FILTER (WHERE fault = 'stale') AS stale, count(*) FILTER (WHERE fault = 'implausible') AS implausible,
         min(price) FILTER (WHERE fault IS NULL) AS min, max(price) FILTER (WHERE fault IS NULL) AS max,
         avg(price) FILTER (WHERE fault IS NULL) AS mean, stddev_samp(price) FILTER (WHERE fault IS NULL) AS deviation,
         percentile_cont('{0.25,0.5,0.75}'::double precision[]) WITHIN GROUP (ORDER BY price::double precision) FILTER (WHERE fault IS NULL) AS q,
         (array_agg(dispensary_id ORDER BY price, place) FILTER (WHERE fault IS NULL))[1] AS cheapest,
         (array_agg(dispensary_id ORDER BY price DESC, place) FILTER (WHERE fault IS NULL))[1] AS dearest
    FROM priced GROUP BY GROUPING SETS ((currency, canonical, size), (state, currency, canonical, size))
  HAVING count(*) FILTER (WHERE fault IS NULL) >= 3
)
INSERT INTO analytics_dispersion_stats (run_id, place, gap_place, all_states, state, canonical_product_id, size, brand_id, category, currency,
       locations, stale_locations, implausible_locations, min, p25, median, p75, max, mean, cv, cheapest_dispensary_id, dearest_dispensary_id)
SELECT %(run)s::bigint, row_number() OVER (ORDER BY x.all_states DESC, x.state, x.locations DESC, x.canonical, x.size, x.currency DESC),
       row_number() OVER (ORDER BY x.all_states DESC, x.state, x.max / x.min DESC, x.max - x.min DESC, x.canonical, x.size, x.currency DESC), x.all_states, x.state,
       x.canonical, x.size, c.brand_id, c.category, x.currency, x.locations, x.stale, x.implausible, x.min, round(x.q[1]::numeric, 4), round(x.q[2]::numeric, 4),
       round(x.q[3]::numeric, 4), x.max, round(x.mean, 4), round(x.deviation / x.mean, 4), x.cheapest, x.dearest
  FROM x JOIN canonical_product_brands c ON c.canonical_product_id = x.canonical;

-- name: fill_cheapest
-- How often a place is among the cheapest of its state: at or below the first quartile, and below the median, so that a price that half
-- of the places ask is not cheap. Of five comparisons at least.
WITH p AS (
  SELECT q.place, q.state, d.category, d.brand_id, q.price <= d.p25 AND q.price < d.median AS cheap
    FROM priced q
    JOIN analytics_dispersion_stats d ON d.run_id = %(run)s::bigint AND NOT d.all_states AND d.state = q.state AND d.canonical_product_id = q.canonical
     AND d.size = q.size
   WHERE q.fault IS NULL
), x AS (
  SELECT CASE grouping(category, brand_id) WHEN 3 THEN 'all' WHEN 1 THEN 'category' ELSE 'brand' END AS level, state, place, category, brand_id,
         count(*) AS compared, count(*) FILTER (WHERE cheap) AS cheapest
    FROM p GROUP BY GROUPING SETS ((state, place), (state, place, category), (state, place, brand_id)) HAVING count(*) >= 5
)
INSERT INTO analytics_cheapest_stats (run_id, place, level, state, category, brand_id, location_id, dispensary_id, compared, cheapest)
SELECT %(run)s::bigint, row_number() OVER (ORDER BY x.level, x.cheapest::numeric / x.compared DESC, x.compared DESC, x.place, x.category, x.brand_id),
       x.level, x.state, x.category, x.brand_id, CASE WHEN x.place > 0 THEN x.place END, w.dispensary_id, x.compared, x.cheapest
  FROM x
  JOIN (SELECT DISTINCT ON (place) place, dispensary_id FROM places ORDER BY place, last_crawled_at DESC, dispensary_id) w ON w.place = x.place
 WHERE x.level = 'all' OR (x.level = 'category' AND x.category IS NOT NULL) OR (x.level = 'brand' AND x.brand_id IS NOT NULL);
