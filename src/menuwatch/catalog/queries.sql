-- Stock counts, totals, product images and folded names.

-- name: ensure_partitions
-- Partitions of past states for this month and those ahead.
SELECT count(*) FILTER (WHERE ensure_product_history_partition(now() + make_interval(months => m)))
  FROM generate_series(0, %(months)s::integer) m;

-- name: stock_counts
-- Products that were in their store's last crawl, by stock status.
SELECT stock_status, count(*) FROM catalog_products
 WHERE dispensary_id = ANY (%(stores)s::integer[]) AND last_seen_at IS NULL GROUP BY stock_status;

-- name: price_drops
-- The largest falls of what a customer pays for the cheapest option, specials included, as a share of the price before.
WITH effective AS (
  SELECT c.*, effective_price(c.price_rec_before, c.price_rec_special_before, c.price_med_before, c.price_med_special_before) AS price_before,
         effective_price(c.price_rec_after, c.price_rec_special_after, c.price_med_after, c.price_med_special_after) AS price_after
    FROM product_changes c WHERE c.price_changed AND c.present
)
SELECT e.name, e.brand_name, d.name AS store, e.price_before, e.price_after,
       round(100 * (e.price_before - e.price_after) / e.price_before, 1) AS percent, e.changed_at
  FROM effective e JOIN dispensaries d ON d.id = e.dispensary_id
 WHERE e.price_before > 0 AND e.price_after < e.price_before
 ORDER BY (e.price_before - e.price_after) / e.price_before DESC, e.price_before - e.price_after DESC, e.product_id LIMIT %(limit)s;

-- name: totals
-- A crawl's `products` are its snapshots, so nothing large is counted.
SELECT (SELECT count(*) FROM catalog_products) AS products,
       coalesce(sum(products), 0)::bigint AS snapshots,
       coalesce(sum(price_changes), 0)::bigint AS price_changes, coalesce(sum(stock_changes), 0)::bigint AS stock_changes,
       coalesce(sum(out_of_stock), 0)::bigint AS out_of_stock
  FROM store_crawls;

-- name: set_local_images
-- Skips rows that another transaction has locked, so this never waits for a menu that is being applied.
WITH free AS (
  SELECT p.id, s.path FROM catalog_products p JOIN unnest(%(ids)s::bigint[], %(paths)s::text[]) s(id, path) ON s.id = p.id
   ORDER BY p.id FOR NO KEY UPDATE OF p SKIP LOCKED
)
UPDATE catalog_products p SET local_image_path = f.path FROM free f WHERE p.id = f.id RETURNING p.id;

-- name: clear_local_images
UPDATE catalog_products SET local_image_path = NULL WHERE id = ANY (%(ids)s::bigint[]);

-- name: fold_names
-- Moves new product names into the index for substring search.
SELECT fold_catalog_names(%(most)s);

-- name: sort_in_names
-- The index collects new entries in a list, which is three times as fast as entering them one by one, but which each search reads.
SELECT gin_clean_pending_list('catalog_names_parts');

-- name: count_totals
-- Counts brands and categories of a large catalog.
SELECT refresh_catalog_totals();

-- name: crawl_warnings
SELECT warnings FROM store_crawls WHERE payload_id = %(payload_id)s ORDER BY crawled_at DESC LIMIT 1;
