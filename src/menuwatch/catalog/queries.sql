-- The catalogue's statements. Writers hold the store's row in `dispensaries` FOR UPDATE, so one crawl of a store is applied at a time.

-- name: known_products
-- What the catalogue knows of a store: enough to tell an unchanged item without decoding it.
SELECT id, provider_product_id, content_hash, consecutive_misses, last_seen_at IS NULL AS current,
       coalesce(last_seen_at < %(long_ago)s, false) AS long_unseen
  FROM catalog_products WHERE dispensary_id = %(dispensary_id)s AND provider = %(provider)s;

-- name: reserve_ids
SELECT nextval(pg_get_serial_sequence('catalog_products', 'id')) FROM generate_series(1, %(n)s);

-- name: create_stage
-- One per connection, emptied at every commit: creating a table for every crawl would bloat the system catalogues.
CREATE TEMPORARY TABLE IF NOT EXISTS catalog_stage (
  id bigint, content_hash bytea, name_raw text, name text, brand_name_raw text, brand_name text, category text,
  subcategory text, strain_type text, status_raw text, price_rec numeric, price_rec_special numeric, price_med numeric,
  price_med_special numeric, stock_status text, is_in_stock boolean, quantity integer, quantity_capped boolean,
  thc_lo numeric, thc_hi numeric, thc_unit text, cbd_lo numeric, cbd_hi numeric, cbd_unit text, variants jsonb,
  cannabinoids jsonb, specials jsonb, image_url text, images jsonb, description text, platform_created_at timestamptz,
  platform_updated_at timestamptz, extra jsonb, category_canon text, subcategory_canon text, strain_canon text,
  prices jsonb, stock jsonb
) ON COMMIT DELETE ROWS;

-- name: empty_stage
-- For whoever applies several menus in one transaction.
TRUNCATE catalog_stage;

-- name: merge_stage
-- The staged products are known ones whose raw item differs from the stored one, or that come back after a gap. A state ends, and
-- becomes history, only where price, stock or potency differ, or after a gap.
WITH o AS MATERIALIZED (
  SELECT p.id, option_prices(p.variants) AS prices, option_stock(p.variants) AS stock
    FROM catalog_stage s JOIN catalog_products p ON p.id = s.id
), c AS MATERIALIZED (
  SELECT s.id, o.prices, o.stock,
         p.last_seen_at IS NOT NULL AS returned,
         o.prices IS DISTINCT FROM s.prices AS price_changed,
         (o.stock, p.stock_status) IS DISTINCT FROM (s.stock, s.stock_status) AS stock_changed,
         (p.thc_lo, p.thc_hi, p.thc_unit, p.cbd_lo, p.cbd_hi, p.cbd_unit)
           IS DISTINCT FROM (s.thc_lo, s.thc_hi, s.thc_unit, s.cbd_lo, s.cbd_hi, s.cbd_unit) AS potency_changed,
         (p.name_raw, p.brand_name_raw, p.category, p.subcategory, p.strain_type, p.status_raw, p.variants, p.cannabinoids, p.specials,
          p.image_url, p.images, p.description, p.extra, p.category_canon, p.subcategory_canon, p.strain_canon)
           IS DISTINCT FROM (s.name_raw, s.brand_name_raw, s.category, s.subcategory, s.strain_type, s.status_raw, s.variants,
          s.cannabinoids, s.specials, s.image_url, s.images, s.description, s.extra, s.category_canon, s.subcategory_canon,
          s.strain_canon) AS text_changed,
         p.stock_status <> 'oos' AND s.stock_status = 'oos' AS newly_oos
    FROM catalog_stage s
    JOIN catalog_products p ON p.id = s.id
    JOIN o ON o.id = s.id
), n AS (
  SELECT id, prices, stock FROM c WHERE returned OR price_changed OR stock_changed OR potency_changed
), ended AS (
  INSERT INTO past_states (product_id, seen_from, seen_to, ended_at, dispensary_id, present, quantity_capped, quantity, stock_status,
         price_rec, price_rec_special, price_med, price_med_special, thc_lo, thc_hi, thc_unit, cbd_lo, cbd_hi, cbd_unit, prices, stock)
  SELECT p.id, p.state_from, coalesce(p.state_to, %(previous)s), %(crawled_at)s, p.dispensary_id, p.present, p.quantity_capped, p.quantity,
         p.stock_status, p.price_rec, p.price_rec_special, p.price_med, p.price_med_special, p.thc_lo, p.thc_hi, p.thc_unit,
         p.cbd_lo, p.cbd_hi, p.cbd_unit, n.prices::text::json, n.stock::text::json
    FROM catalog_products p JOIN n ON n.id = p.id
), updated AS (
  UPDATE catalog_products p SET
         content_hash = s.content_hash, name_raw = s.name_raw, name = s.name, brand_name_raw = s.brand_name_raw,
         brand_name = s.brand_name, category = s.category, subcategory = s.subcategory, strain_type = s.strain_type,
         status_raw = s.status_raw, price_rec = s.price_rec, price_rec_special = s.price_rec_special, price_med = s.price_med,
         price_med_special = s.price_med_special, stock_status = s.stock_status, is_in_stock = s.is_in_stock,
         quantity = s.quantity, quantity_capped = s.quantity_capped, thc_lo = s.thc_lo, thc_hi = s.thc_hi,
         thc_unit = s.thc_unit, cbd_lo = s.cbd_lo, cbd_hi = s.cbd_hi, cbd_unit = s.cbd_unit, variants = s.variants,
         cannabinoids = s.cannabinoids, specials = s.specials, image_url = s.image_url, images = s.images,
         description = s.description, platform_created_at = s.platform_created_at,
         platform_updated_at = s.platform_updated_at, extra = s.extra, category_canon = s.category_canon,
         subcategory_canon = s.subcategory_canon, strain_canon = s.strain_canon, consecutive_misses = 0, last_seen_at = NULL,
         state_to = NULL, present = true,
         state_from = CASE WHEN n.id IS NULL THEN p.state_from ELSE %(crawled_at)s END,
         changed_at = CASE WHEN n.id IS NOT NULL OR c.text_changed THEN %(crawled_at)s ELSE p.changed_at END
    FROM catalog_stage s JOIN c ON c.id = s.id LEFT JOIN n ON n.id = s.id
   WHERE p.id = s.id
)
SELECT count(*) FILTER (WHERE price_changed OR stock_changed OR potency_changed OR text_changed) AS changed,
       count(*) FILTER (WHERE returned) AS returned,
       count(*) FILTER (WHERE price_changed) AS price_changes,
       count(*) FILTER (WHERE stock_changed) AS stock_changes,
       count(*) FILTER (WHERE newly_oos) AS out_of_stock,
       count(*) AS staged
  FROM c;

-- name: record_gaps
-- Products that this crawl has no state for: their misses now, and when they were last seen. Their state was last seen by the crawl before.
UPDATE catalog_products p
   SET consecutive_misses = u.misses, last_seen_at = coalesce(u.seen, p.last_seen_at, %(previous)s),
       state_to = CASE WHEN p.present THEN coalesce(p.state_to, %(previous)s) END
  FROM unnest(%(ids)s::bigint[], %(misses)s::smallint[], %(seen)s::timestamptz[]) u(id, misses, seen)
 WHERE p.id = u.id;

-- name: declare_oos
-- The third miss: out of stock from this crawl on, at the prices last seen.
WITH gone AS (
  SELECT p.id, p.stock_status <> 'oos' AS newly_oos, p.stock_status AS status_before, option_stock(p.variants) AS stock_before,
         coalesce((SELECT jsonb_agg((v - 'capped') || '{"stock_status": "oos", "quantity": 0}') FROM jsonb_array_elements(p.variants) v), '[]') AS variants
    FROM catalog_products p
   WHERE p.id = ANY (%(ids)s::bigint[])
), ended AS (
  -- One that could not be read since its third miss is still in the state of being gone.
  INSERT INTO past_states (product_id, seen_from, seen_to, ended_at, dispensary_id, present, quantity_capped, quantity, stock_status,
         price_rec, price_rec_special, price_med, price_med_special, thc_lo, thc_hi, thc_unit, cbd_lo, cbd_hi, cbd_unit, prices, stock)
  SELECT p.id, p.state_from, p.state_to, %(crawled_at)s, p.dispensary_id, true, p.quantity_capped, p.quantity, p.stock_status, p.price_rec,
         p.price_rec_special, p.price_med, p.price_med_special, p.thc_lo, p.thc_hi, p.thc_unit, p.cbd_lo, p.cbd_hi, p.cbd_unit,
         option_prices(p.variants)::text::json, g.stock_before::text::json
    FROM gone g JOIN catalog_products p ON p.id = g.id WHERE p.present
), updated AS (
  UPDATE catalog_products p
     SET consecutive_misses = 3, stock_status = 'oos', is_in_stock = false, quantity = 0, quantity_capped = false,
         state_from = CASE WHEN p.present THEN %(crawled_at)s ELSE p.state_from END, state_to = NULL, present = false,
         changed_at = CASE WHEN p.present THEN %(crawled_at)s ELSE p.changed_at END, variants = g.variants
    FROM gone g WHERE p.id = g.id
)
SELECT count(*) FILTER (WHERE newly_oos) AS out_of_stock,
       count(*) FILTER (WHERE (stock_before, status_before) IS DISTINCT FROM (option_stock(variants), 'oos')) AS stock_changes
  FROM gone;

-- name: record_crawl
INSERT INTO store_crawls (dispensary_id, crawled_at, payload_id, products, new_products, changed, unchanged, returned, missing,
       out_of_stock, price_changes, stock_changes, warnings)
VALUES (%(dispensary_id)s, %(crawled_at)s, %(payload_id)s, %(products)s, %(new)s, %(changed)s, %(unchanged)s, %(returned)s, %(missing)s,
       %(out_of_stock)s, %(price_changes)s, %(stock_changes)s, %(warnings)s);

-- name: ensure_partition
SELECT ensure_past_states_partition(%(instant)s);

-- name: ensure_partitions
-- Partitions of past states for this month and those ahead.
SELECT count(*) FILTER (WHERE ensure_past_states_partition(now() + make_interval(months => m)))
  FROM generate_series(0, %(months)s::integer) m;

-- name: stock_counts
-- Products that were in their store's last crawl, by stock status.
SELECT stock_status, count(*) FROM catalog_products
 WHERE dispensary_id = ANY (%(stores)s::integer[]) AND last_seen_at IS NULL GROUP BY stock_status;

-- name: products_of
SELECT p.id, p.provider_product_id, d.slug AS store, p.dispensary_id, p.name, p.brand_name, p.category, p.subcategory, p.strain_type,
       p.price_rec, p.price_rec_special, p.price_med, p.price_med_special, p.stock_status, p.is_in_stock, p.quantity, p.quantity_capped,
       p.thc_lo, p.thc_hi, p.thc_unit, p.cbd_lo, p.cbd_hi, p.cbd_unit, p.variants, p.specials, p.image_url, p.local_image_path,
       p.consecutive_misses, p.first_seen_at, p.last_seen_at, p.updated_at, p.name_raw, p.brand_name_raw, p.status_raw,
       p.category_canon, p.subcategory_canon, p.strain_canon
  FROM store_products p JOIN dispensaries d ON d.id = p.dispensary_id
 WHERE (%(dispensary_id)s::integer IS NULL OR p.dispensary_id = %(dispensary_id)s)
   AND (%(categories_canon)s::text[] IS NULL OR p.category_canon = ANY (%(categories_canon)s))
   AND (%(subcategories_canon)s::text[] IS NULL OR p.subcategory_canon = ANY (%(subcategories_canon)s))
   AND (%(strains_canon)s::text[] IS NULL OR p.strain_canon = ANY (%(strains_canon)s))
   AND (%(states)s::text[] IS NULL OR d.state = ANY (%(states)s))
   AND (%(platforms)s::text[] IS NULL OR p.provider = ANY (%(platforms)s))
   AND (%(brands)s::text[] IS NULL OR lower(p.brand_name) = ANY (%(brands)s))
   AND (%(stock)s::text[] IS NULL OR p.stock_status = ANY (%(stock)s))
 ORDER BY p.dispensary_id, p.name, p.provider_product_id LIMIT %(limit)s;

-- name: changes_since
SELECT * FROM (
  SELECT c.changed_at, d.slug AS store, c.name, c.brand_name, c.category, c.product_id, c.provider_product_id, c.dispensary_id,
         c.price_changed, c.stock_changed,
         effective_price(c.price_rec_before, c.price_rec_special_before, c.price_med_before, c.price_med_special_before) AS price_before,
         effective_price(c.price_rec_after, c.price_rec_special_after, c.price_med_after, c.price_med_special_after) AS price_after,
         c.price_rec_before, c.price_rec_after,
         c.stock_status_before, c.stock_status_after, c.quantity_before, c.quantity_after, c.prices_before, c.prices_after,
         c.stock_before, c.stock_after
    FROM product_changes c
    JOIN dispensaries d ON d.id = c.dispensary_id
    JOIN catalog_products p ON p.id = c.product_id
   WHERE (%(since)s::timestamptz IS NULL OR c.changed_at >= %(since)s)
     AND (%(dispensary_id)s::integer IS NULL OR c.dispensary_id = %(dispensary_id)s)
     AND (%(states)s::text[] IS NULL OR d.state = ANY (%(states)s))
     AND (%(categories_canon)s::text[] IS NULL OR p.category_canon = ANY (%(categories_canon)s))
     AND (%(brands)s::text[] IS NULL OR lower(p.brand_name) = ANY (%(brands)s))
) c
 WHERE change_is(%(kind)s::text, c.price_changed, c.stock_changed, c.price_before, c.price_after, c.stock_status_before, c.stock_status_after)
 ORDER BY c.changed_at DESC, c.product_id DESC LIMIT %(limit)s;

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
-- Products whose row is somebody else's at the moment are left out, so that nobody ever waits here for whoever applies a menu.
WITH free AS (
  SELECT p.id, s.path FROM catalog_products p JOIN unnest(%(ids)s::bigint[], %(paths)s::text[]) s(id, path) ON s.id = p.id
   ORDER BY p.id FOR NO KEY UPDATE OF p SKIP LOCKED
)
UPDATE catalog_products p SET local_image_path = f.path FROM free f WHERE p.id = f.id RETURNING p.id;

-- name: clear_local_images
UPDATE catalog_products SET local_image_path = NULL WHERE id = ANY (%(ids)s::bigint[]);

-- name: fold_names
-- Moves names of products that are new to where a part of one is looked for.
SELECT fold_catalog_names();

-- name: count_totals
-- Counts brands and categories of a large catalogue.
SELECT refresh_catalog_totals();
