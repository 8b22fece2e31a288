-- The price index, day by day: prices that were observed, what became of each known price, and the link from the day before.
-- price_index.py states the method.

-- name: create_index_crawls
-- Stores with a crawl that no day has counted yet: the last one that was counted, and the last one by the end of the day.
CREATE TEMPORARY TABLE IF NOT EXISTS index_crawls (
  dispensary_id integer PRIMARY KEY, since timestamptz NOT NULL, crawled_at timestamptz NOT NULL);

-- name: create_index_listings
-- All products with their store and category: one row, or one for each option that can be bought, if the store has a new crawl. Rows of the
-- catalog are large: they are read once a day for this table.
CREATE TEMPORARY TABLE IF NOT EXISTS index_listings (
  product_id bigint NOT NULL, dispensary_id integer NOT NULL, category text NOT NULL, state_from timestamptz NOT NULL, state_seen_to timestamptz,
  option text NOT NULL, price double precision, is_offered boolean NOT NULL, is_first boolean NOT NULL);

-- name: create_index_prices
-- The last price of each item that these crawls saw in stock.
CREATE TEMPORARY TABLE IF NOT EXISTS index_prices (
  product_id bigint NOT NULL, option text NOT NULL, price double precision NOT NULL);

-- name: create_index_sums
-- Items by store, category and the day of their former price. `change` is the sum of the logarithms of matched price relatives.
CREATE TEMPORARY TABLE IF NOT EXISTS index_sums (
  dispensary_id integer NOT NULL, category text NOT NULL, former_day date, matched bigint NOT NULL, change double precision NOT NULL,
  carried bigint NOT NULL, entered bigint NOT NULL, expired bigint NOT NULL, outliers bigint NOT NULL);

-- name: empty_index
TRUNCATE pg_temp.index_crawls, pg_temp.index_listings, pg_temp.index_prices, pg_temp.index_sums;

-- name: next_day
-- The first day that is not computed and whose history is still in the database: months that were packed have no partition. No row before
-- the first crawl.
SELECT greatest((SELECT max(day) + 1 FROM price_index_days WHERE state = 'all' AND category = 'all'), c.first_day, p.first_day,
                CASE WHEN NOT EXISTS (SELECT FROM price_index_days)
                     THEN (%(now)s::timestamptz AT TIME ZONE 'UTC')::date - %(most)s::integer END) AS day
  FROM (SELECT (min(crawled_at) AT TIME ZONE 'UTC')::date AS first_day FROM store_crawls) c,
       (SELECT (min(b.lower[1]::timestamptz) AT TIME ZONE 'UTC')::date AS first_day
          FROM pg_inherits i JOIN pg_class k ON k.oid = i.inhrelid
         CROSS JOIN LATERAL regexp_match(pg_get_expr(k.relpartbound, k.oid), 'FROM \(''([^'']+)''\)') b(lower)
         WHERE i.inhparent = 'product_history'::regclass) p
 WHERE c.first_day IS NOT NULL;

-- name: fill_index_crawls
-- A crawl that was applied after its own day was computed counts on the next one, if it is not older than an item's price may be.
INSERT INTO index_crawls (dispensary_id, since, crawled_at)
SELECT c.dispensary_id, coalesce(s.crawled_at, %(start)s::timestamptz - interval '1 microsecond'), c.crawled_at
  FROM (SELECT dispensary_id, max(crawled_at) AS crawled_at FROM store_crawls
         WHERE crawled_at >= %(start)s::timestamptz - make_interval(days => %(keep)s)
           AND crawled_at < %(start)s::timestamptz + interval '1 day'
         GROUP BY dispensary_id) c
  LEFT JOIN price_index_stores s ON s.dispensary_id = c.dispensary_id
 WHERE c.crawled_at > coalesce(s.crawled_at, %(start)s::timestamptz - interval '1 microsecond');

-- name: fill_index_listings
INSERT INTO index_listings (product_id, dispensary_id, category, state_from, state_seen_to, option, price, is_offered, is_first)
SELECT p.id, p.dispensary_id, coalesce(p.category_canon, 'unknown'), p.state_from, p.state_seen_to, coalesce(v.option, ''),
       effective_price(v.price_rec, v.special_rec, v.price_med, v.special_med)::float8, v.stock_status IS DISTINCT FROM 'oos', coalesce(v.n, 1) = 1
  FROM catalog_products p
  LEFT JOIN LATERAL ROWS FROM (
         jsonb_to_recordset(CASE WHEN p.present AND p.stock_status <> 'oos' AND p.dispensary_id IN (SELECT dispensary_id FROM index_crawls)
                                 THEN p.variants ELSE '[]' END)
           AS (option text, stock_status text, price_rec numeric, special_rec numeric, price_med numeric, special_med numeric)) WITH ORDINALITY
       v(option, stock_status, price_rec, special_rec, price_med, special_med, n) ON true;

-- name: fill_index_prices
-- Of states that these crawls saw, on the menu and not out of stock, the last one with a price; the lower one where a menu has an option
-- twice.
INSERT INTO index_prices (product_id, option, price)
SELECT DISTINCT ON (s.product_id, s.option) s.product_id, s.option, s.price
  FROM (
    SELECT h.product_id, h.seen_from, coalesce(o.v ->> 0, '') AS option,
           effective_price((o.v ->> 1)::numeric, (o.v ->> 2)::numeric, (o.v ->> 3)::numeric, (o.v ->> 4)::numeric)::float8 AS price
      FROM index_crawls c
      JOIN product_history h ON h.dispensary_id = c.dispensary_id AND h.ended_at > c.since
     CROSS JOIN LATERAL jsonb_array_elements(h.prices::jsonb) WITH ORDINALITY o(v, n)
     WHERE h.ended_at > (SELECT min(since) FROM index_crawls) AND h.seen_to > c.since AND h.seen_from <= c.crawled_at
       AND h.present AND h.stock_status <> 'oos' AND h.stock::jsonb -> (o.n - 1)::integer ->> 1 IS DISTINCT FROM 'oos'
     UNION ALL
    SELECT p.product_id, p.state_from, p.option, p.price
      FROM index_crawls c
      JOIN index_listings p ON p.dispensary_id = c.dispensary_id
     WHERE p.state_from <= c.crawled_at AND (p.state_seen_to IS NULL OR p.state_seen_to > c.since) AND p.is_offered) s
 WHERE s.price > 0
 ORDER BY s.product_id, s.option, s.seen_from DESC, s.price;

-- piece: known_prices
SELECT i.product_id, i.option, i.price, coalesce(i.day, s.day) AS day, p.dispensary_id
      FROM price_index_items i
      JOIN index_listings p ON p.product_id = i.product_id AND p.is_first
      LEFT JOIN price_index_stores s ON s.dispensary_id = p.dispensary_id

-- piece: is_kept
%(day)s::date - %(keep)s::integer

-- piece: plausible
BETWEEN k.price / %(factor)s::double precision AND k.price * %(factor)s::double precision

-- name: fill_index_sums
WITH known AS (
    {known_prices}
), x AS (
  SELECT coalesce(n.product_id, k.product_id) AS product_id, k.day,
         CASE WHEN n.product_id IS NULL THEN CASE WHEN k.day >= {is_kept} THEN 'carried' ELSE 'expired' END
              WHEN (k.day >= {is_kept}) IS NOT TRUE THEN 'entered'
              WHEN n.price {plausible} THEN 'matched'
              ELSE 'outlier' END AS kind,
         n.price / k.price AS relative
    FROM known k FULL JOIN index_prices n ON n.product_id = k.product_id AND n.option = k.option
)
INSERT INTO index_sums (dispensary_id, category, former_day, matched, change, carried, entered, expired, outliers)
SELECT p.dispensary_id, p.category, CASE x.kind WHEN 'matched' THEN x.day END,
       count(*) FILTER (WHERE x.kind = 'matched'), coalesce(sum(ln(x.relative)) FILTER (WHERE x.kind = 'matched'), 0),
       count(*) FILTER (WHERE x.kind IN ('carried', 'outlier')), count(*) FILTER (WHERE x.kind = 'entered'),
       count(*) FILTER (WHERE x.kind = 'expired'), count(*) FILTER (WHERE x.kind = 'outlier')
  FROM x JOIN index_listings p ON p.product_id = x.product_id AND p.is_first
 GROUP BY 1, 2, 3;

-- name: drop_outliers
-- Prices that were left out are as if they had not been seen.
DELETE FROM index_prices n USING ({known_prices}) k
 WHERE k.dispensary_id IN (SELECT dispensary_id FROM index_sums WHERE outliers > 0)
   AND k.product_id = n.product_id AND k.option = n.option AND k.day >= {is_kept} AND NOT n.price {plausible};

-- name: insert_day
-- `level` is the sum of all links so far. The change of an item counts less what its state and category did on days on which the item took
-- no part: on those it moved with them. `deviations` are sums as well: what random groups of stores added to the level beyond their share.
-- A row of all stores is written in any case: it says that the day is computed.
WITH s AS (
  SELECT x.*, coalesce(d.state, 'unknown') AS state FROM index_sums x JOIN dispensaries d ON d.id = x.dispensary_id
), g AS (
  SELECT CASE grouping(s.state) WHEN 1 THEN 'all' ELSE s.state END AS state,
         CASE grouping(s.category) WHEN 1 THEN 'all' ELSE s.category END AS category,
         s.dispensary_id, s.former_day, sum(s.matched) AS matched, sum(s.change) AS change, sum(s.carried) AS carried,
         sum(s.entered) AS entered, sum(s.expired) AS expired, sum(s.outliers) AS outliers
    FROM s
   GROUP BY GROUPING SETS ((s.dispensary_id, s.former_day), (s.state, s.dispensary_id, s.former_day),
                           (s.category, s.dispensary_id, s.former_day), (s.state, s.category, s.dispensary_id, s.former_day))
   UNION ALL
  SELECT 'all', 'all', NULL, NULL, 0, 0, 0, 0, 0, 0
), former AS MATERIALIZED (
  SELECT state, category, day, level, deviations FROM price_index_days WHERE day >= {is_kept} AND day < %(day)s
), latest AS (
  SELECT DISTINCT ON (state, category) state, category, level, deviations FROM former ORDER BY state, category, day DESC
), stores AS (
  SELECT g.state, g.category, g.dispensary_id, sum(g.matched)::double precision AS matched,
         sum(g.change - g.matched * coalesce(b.level - f.level, 0)) AS change, sum(g.carried) AS carried,
         sum(g.entered) AS entered, sum(g.expired) AS expired, sum(g.outliers) AS outliers
    FROM g
    LEFT JOIN former f ON f.state = g.state AND f.category = g.category AND f.day = g.former_day
    LEFT JOIN latest b ON b.state = g.state AND b.category = g.category
   GROUP BY g.state, g.category, g.dispensary_id
), link AS (
  SELECT state, category, count(*) FILTER (WHERE matched > 0) AS stores, count(*) FILTER (WHERE matched + carried > 0) AS known_stores,
         sum(matched) AS matched, sum(carried) AS carried, sum(entered) AS entered, sum(expired) AS expired, sum(outliers) AS outliers,
         sum(change) / nullif(sum(matched), 0) AS change
    FROM stores GROUP BY state, category
), parts AS (
  SELECT l.state, l.category, s.dispensary_id %% %(groups)s::integer AS part,
         sum(s.change - l.change * s.matched) / l.matched AS deviation
    FROM link l JOIN stores s ON s.state = l.state AND s.category = l.category
   WHERE s.matched > 0 GROUP BY l.state, l.category, l.matched, part
), sums AS (
  SELECT l.state, l.category, array_agg(coalesce(b.deviations[n.part + 1], 0) + coalesce(p.deviation, 0) ORDER BY n.part) AS deviations
    FROM link l
   CROSS JOIN generate_series(0, %(groups)s::integer - 1) n(part)
    LEFT JOIN parts p ON p.state = l.state AND p.category = l.category AND p.part = n.part
    LEFT JOIN latest b ON b.state = l.state AND b.category = l.category
   GROUP BY l.state, l.category
)
INSERT INTO price_index_days (state, category, day, stores, known_stores, matched, carried, entered, expired, outliers, change, level,
       deviations)
SELECT l.state, l.category, %(day)s, l.stores, l.known_stores, l.matched, l.carried, l.entered, l.expired, l.outliers, l.change,
       coalesce(b.level, 0) + coalesce(l.change, 0), d.deviations
  FROM link l
  JOIN sums d ON d.state = l.state AND d.category = l.category
  LEFT JOIN latest b ON b.state = l.state AND b.category = l.category;

-- name: age_items
-- Items that their store's new crawls did not see keep the day of their price.
UPDATE price_index_items i SET day = s.day
  FROM index_crawls c
  JOIN price_index_stores s ON s.dispensary_id = c.dispensary_id
  JOIN index_listings p ON p.dispensary_id = c.dispensary_id AND p.is_first
 WHERE i.product_id = p.product_id AND i.day IS NULL
   AND NOT EXISTS (SELECT FROM index_prices n WHERE n.product_id = i.product_id AND n.option = i.option);

-- name: update_items
-- Only rows that differ are written.
UPDATE price_index_items i SET price = n.price, day = NULL
  FROM index_prices n WHERE n.product_id = i.product_id AND n.option = i.option AND (i.day IS NOT NULL OR i.price <> n.price);

-- name: insert_items
-- Not by NOT EXISTS: where the table was vacuumed while it was empty, that is planned as one scan of the table for each row.
INSERT INTO price_index_items (product_id, option, price)
SELECT n.product_id, n.option, n.price FROM index_prices n
    ON CONFLICT (product_id, option) DO NOTHING;

-- name: put_stores
INSERT INTO price_index_stores (dispensary_id, day, crawled_at) SELECT dispensary_id, %(day)s::date, crawled_at FROM index_crawls
ON CONFLICT (dispensary_id) DO UPDATE SET day = excluded.day, crawled_at = excluded.crawled_at;

-- name: expire_items
-- Prices that are too old for the next day stay for one more, which counts them as expired. Items of removed products go at once.
DELETE FROM price_index_items i
 WHERE NOT EXISTS (SELECT FROM index_listings p LEFT JOIN price_index_stores s ON s.dispensary_id = p.dispensary_id
                    WHERE p.product_id = i.product_id AND coalesce(i.day, s.day) >= %(day)s::date - %(keep)s::integer);

-- name: index_days
-- Every computed day of a span, with zeros where the state and category had no items.
SELECT d.day, coalesce(c.stores, 0) AS stores, coalesce(c.known_stores, 0) AS known_stores, coalesce(c.matched, 0) AS matched,
       coalesce(c.carried, 0) AS carried, coalesce(c.entered, 0) AS entered, coalesce(c.expired, 0) AS expired,
       coalesce(c.outliers, 0) AS outliers,
       c.change, c.level, c.deviations
  FROM price_index_days d
  LEFT JOIN price_index_days c ON c.state = %(state)s AND c.category = %(category)s AND c.day = d.day
 WHERE d.state = 'all' AND d.category = 'all' AND d.day BETWEEN %(first)s::date AND %(last)s::date
 ORDER BY d.day;

-- name: computed_days
SELECT min(day) AS first_day, max(day) AS last_day, (SELECT min(crawled_at) FROM store_crawls) AS first_crawl
  FROM price_index_days WHERE state = 'all' AND category = 'all';
