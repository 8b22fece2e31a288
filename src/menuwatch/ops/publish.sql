-- The tables of the published dataset (exports/dataset.py): the views for analysts, those of the history with what is packed.

-- piece: history_columns
v.state, v.dispensary_id, v.product_id, coalesce(o.position, 0) AS position, coalesce(o.price ->> 0, o.stock ->> 0) AS option, v.seen_from,
       v.seen_to, v.present, (o.price ->> 1)::numeric AS price_rec, (o.price ->> 2)::numeric AS price_rec_special,
       (o.price ->> 3)::numeric AS price_med, (o.price ->> 4)::numeric AS price_med_special, coalesce(o.stock ->> 1, v.stock_status) AS stock_status,
       CASE WHEN o.stock IS NULL THEN v.quantity ELSE (o.stock ->> 2)::bigint END AS quantity,
       coalesce((o.stock ->> 3)::boolean, v.quantity_capped) AS quantity_capped,
       v.thc_lo, v.thc_hi, v.thc_unit, v.cbd_lo, v.cbd_hi, v.cbd_unit

-- piece: history_options
LEFT JOIN LATERAL ROWS FROM (jsonb_array_elements(v.prices), jsonb_array_elements(v.stock)) WITH ORDINALITY AS o(price, stock, position) ON true

-- name: price_history
-- States that ended in a month.
SELECT to_char(%(month)s::date, 'YYYY-MM') AS month, {history_columns}
  FROM (SELECT d.state, h.dispensary_id, h.product_id, h.seen_from, h.seen_to, h.present, h.quantity_capped, h.quantity, h.stock_status, h.thc_lo,
               h.thc_hi, h.thc_unit, h.cbd_lo, h.cbd_hi, h.cbd_unit, h.prices::jsonb AS prices, h.stock::jsonb AS stock
          FROM product_history h
          JOIN catalog_products p ON p.id = h.product_id
          JOIN dispensaries d ON d.id = h.dispensary_id AND coalesce(d.state, '') = ANY (%(states)s::text[])
         WHERE h.ended_at >= %(month)s::date::timestamp AT TIME ZONE 'UTC'
           AND h.ended_at < (%(month)s::date + interval '1 month') AT TIME ZONE 'UTC') v
  {history_options};

-- name: price_history_now
-- States that last.
SELECT 'current' AS month, {history_columns}
  FROM (SELECT d.state, p.dispensary_id, p.id AS product_id, p.state_from AS seen_from, p.state_seen_to AS seen_to, p.present, p.quantity_capped,
               p.quantity, p.stock_status, p.thc_lo, p.thc_hi, p.thc_unit, p.cbd_lo, p.cbd_hi, p.cbd_unit, option_prices(p.variants) AS prices,
               option_stock(p.variants) AS stock
          FROM catalog_products p
          JOIN dispensaries d ON d.id = p.dispensary_id AND coalesce(d.state, '') = ANY (%(states)s::text[])) v
  {history_options};

-- name: changes
SELECT to_char(%(month)s::date, 'YYYY-MM') AS month, v.* FROM analyst.changes v
 WHERE v.changed_at >= %(month)s::date::timestamp AT TIME ZONE 'UTC' AND v.changed_at < (%(month)s::date + interval '1 month') AT TIME ZONE 'UTC'
   AND coalesce(v.state, '') = ANY (%(states)s::text[]);

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

-- name: history_sources
-- A fingerprint of each month and state: the revisions of its stores, and the partition, which is dropped and emptied without triggers.
WITH stores AS (
  SELECT d.id, coalesce(d.state, '') AS state, a.revision
    FROM dispensaries d LEFT JOIN history_revisions a ON a.dispensary_id = d.id AND a.month = '-infinity'
), partitions AS (
  SELECT c.relname, c.oid::text || ' ' || pg_relation_filenode(c.oid) AS file
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
   WHERE i.inhparent = (SELECT p.oid FROM pg_class p WHERE p.relname = 'product_history' AND p.relkind = 'p' AND p.relnamespace = current_schema()::regnamespace) AND NOT i.inhdetachpending
)
SELECT CASE WHEN r.month = 'infinity' THEN NULL ELSE r.month END AS month, s.state,
       md5(concat_ws(' ', max(p.file), string_agg(concat_ws(' ', s.id, coalesce(s.revision::text, '-'), r.revision), ' ' ORDER BY s.id))) AS source
  FROM history_revisions r JOIN stores s ON s.id = r.dispensary_id
  LEFT JOIN partitions p ON r.month < 'infinity' AND p.relname = 'product_history_' || to_char(r.month, 'YYYY_MM')
 WHERE r.month > '-infinity'
 GROUP BY r.month, s.state ORDER BY r.month, s.state;

-- name: listings_source
-- A fingerprint of what the tables of listings say: the revisions of products, their stores, and what they are matched to.
SELECT md5(concat_ws(' ', (
         SELECT string_agg(md5((d.id, d.name, d.state, extract(epoch FROM d.last_crawled_at), l.location_id, a.revision, n.revision)::text), '' ORDER BY d.id)
           FROM dispensaries d LEFT JOIN store_locations l ON l.dispensary_id = d.id
           LEFT JOIN history_revisions a ON a.dispensary_id = d.id AND a.month = '-infinity'
           LEFT JOIN history_revisions n ON n.dispensary_id = d.id AND n.month = 'infinity'), (
         SELECT count(*) || ' ' || bit_xor(('x' || md5((i.product_id, i.canonical_product_id, i.brand_id)::text))::bit(128)) FROM product_identities i))) AS source;

-- name: provenance
-- The platforms that the prices come from, and the crawls behind them.
SELECT d.platform, count(DISTINCT d.id)::integer AS stores, count(*) AS crawls, min(c.crawled_at) AS first_crawl, max(c.crawled_at) AS last_crawl
  FROM store_crawls c JOIN dispensaries d ON d.id = c.dispensary_id
 GROUP BY 1 ORDER BY 1;

-- name: lock
SELECT pg_try_advisory_lock(hashtextextended(%(destination)s, 4711)) AS locked;

-- name: unlock
SELECT pg_advisory_unlock(hashtextextended(%(destination)s, 4711));
