-- The tables of the published dataset (exports/dataset.py): the views for analysts, those of the history with what is packed.

-- name: price_history
SELECT to_char(v.seen_from AT TIME ZONE 'UTC', 'YYYY-MM') AS month, v.state, v.dispensary_id, v.product_id, coalesce(o.position, 0) AS position,
       coalesce(o.price ->> 0, o.stock ->> 0) AS option, v.seen_from, v.seen_to, v.present, (o.price ->> 1)::numeric AS price_rec,
       (o.price ->> 2)::numeric AS price_rec_special, (o.price ->> 3)::numeric AS price_med, (o.price ->> 4)::numeric AS price_med_special,
       coalesce(o.stock ->> 1, v.stock_status) AS stock_status,
       CASE WHEN o.stock IS NULL THEN v.quantity ELSE (o.stock ->> 2)::bigint END AS quantity,
       coalesce((o.stock ->> 3)::boolean, v.quantity_capped) AS quantity_capped,
       v.thc_lo, v.thc_hi, v.thc_unit, v.cbd_lo, v.cbd_hi, v.cbd_unit
  FROM analyst.states v
  LEFT JOIN LATERAL ROWS FROM (jsonb_array_elements(v.prices), jsonb_array_elements(v.stock)) WITH ORDINALITY AS o(price, stock, position) ON true;

-- name: changes
SELECT to_char(v.changed_at AT TIME ZONE 'UTC', 'YYYY-MM') AS month, v.* FROM analyst.changes v;

-- name: menus
SELECT v.* FROM analyst.offers v;

-- name: products
SELECT v.* FROM analyst.products v;

-- name: canonical_products
SELECT v.* FROM analyst.canonical_products v;

-- name: brands
SELECT v.* FROM analyst.brands v;

-- name: stores
SELECT v.* FROM analyst.stores v;

-- name: locations
SELECT v.* FROM analyst.locations v;

-- name: price_index
SELECT v.state, v.category, v.day, v.stores, v.known_stores, v.matched, v.carried, v.entered, v.expired, v.outliers, v.change, v.level,
       to_json(v.deviations) AS deviations
  FROM analyst.price_index v;

-- name: provenance
-- The platforms that the prices come from, and the crawls behind them.
SELECT d.platform, count(DISTINCT d.id)::integer AS stores, count(*) AS crawls, min(c.crawled_at) AS first_crawl, max(c.crawled_at) AS last_crawl
  FROM store_crawls c JOIN dispensaries d ON d.id = c.dispensary_id
 GROUP BY 1 ORDER BY 1;

-- name: lock
SELECT pg_try_advisory_lock(hashtextextended(%(destination)s, 4711)) AS locked;

-- name: unlock
SELECT pg_advisory_unlock(hashtextextended(%(destination)s, 4711));
