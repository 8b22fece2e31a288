-- Applying a menu: new, changed and missing products. `merge_changed` decides what counts as a change. Writers hold the store's row in
-- `dispensaries` FOR UPDATE, so one crawl of a store is applied at a time.

-- name: known_products
-- What the catalog knows of a store: enough to tell an unchanged item without decoding it.
SELECT id, provider_product_id, content_hash, consecutive_misses, last_seen_at IS NULL AS current,
       coalesce(last_seen_at < %(long_ago)s, false) AS long_unseen
  FROM catalog_products WHERE dispensary_id = %(dispensary_id)s AND provider = %(provider)s;

-- name: reserve_ids
SELECT nextval(pg_get_serial_sequence('catalog_products', 'id')) FROM generate_series(1, %(n)s);

-- piece: not_of_product
'{kiosk_quantity,kiosk_below_threshold}'::text[]

-- name: merge_changed
-- `products` are known ones whose raw item differs from the stored one, or that come back after a gap. A state ends, and
-- becomes history, only where price, stock or potency differ, or after a gap. What a brand says of itself and the stock of the shop's
-- kiosk do not count as changes of the product, nor does its sold count, which grows with every sale; past counts are kept beside past batches and lab values.
WITH s AS MATERIALIZED (
  SELECT * FROM json_to_recordset(%(products)s::json) AS s(
         id bigint, content_hash bytea, name_raw text, name text, brand_name_raw text, brand_name text, category text,
         subcategory text, strain_type text, status_raw text, price_rec numeric, price_rec_special numeric, price_med numeric,
         price_med_special numeric, stock_status text, is_in_stock boolean, quantity integer, quantity_capped boolean,
         thc_lo numeric, thc_hi numeric, thc_unit text, cbd_lo numeric, cbd_hi numeric, cbd_unit text, variants jsonb,
         cannabinoids jsonb, specials jsonb, image_url text, images jsonb, description text, platform_created_at timestamptz,
         platform_updated_at timestamptz, extra jsonb, category_canon text, subcategory_canon text, strain_canon text,
         terpenes jsonb, batch jsonb, quantity_sold bigint, brand_description_hash uuid, prices jsonb, stock jsonb)
), o AS MATERIALIZED (
  SELECT p.id, option_prices(p.variants) AS prices, option_stock(p.variants) AS stock
    FROM s JOIN catalog_products p ON p.id = s.id
), c AS MATERIALIZED (
  SELECT s.id, o.prices, o.stock,
         p.last_seen_at IS NOT NULL AS returned,
         o.prices IS DISTINCT FROM s.prices AS price_changed,
         (o.stock, p.stock_status) IS DISTINCT FROM (s.stock, s.stock_status) AS stock_changed,
         (p.thc_lo, p.thc_hi, p.thc_unit, p.cbd_lo, p.cbd_hi, p.cbd_unit)
           IS DISTINCT FROM (s.thc_lo, s.thc_hi, s.thc_unit, s.cbd_lo, s.cbd_hi, s.cbd_unit) AS potency_changed,
         (p.name_raw, p.brand_name_raw, p.category, p.subcategory, p.strain_type, p.status_raw, p.variants, p.specials,
          p.image_url, p.images, p.description, p.extra - {not_of_product}, p.category_canon, p.subcategory_canon, p.strain_canon)
           IS DISTINCT FROM (s.name_raw, s.brand_name_raw, s.category, s.subcategory, s.strain_type, s.status_raw, s.variants,
          s.specials, s.image_url, s.images, s.description, s.extra - {not_of_product}, s.category_canon, s.subcategory_canon,
          s.strain_canon) AS text_changed,
         (p.batch, p.cannabinoids, p.terpenes) IS DISTINCT FROM (s.batch, s.cannabinoids, s.terpenes) AS details_changed,
         p.quantity_sold IS DISTINCT FROM s.quantity_sold AS sold_changed,
         p.stock_status <> 'oos' AND s.stock_status = 'oos' AS newly_oos,
         coalesce(p.details_from, p.first_seen_at) AS details_from, p.quantity_sold, p.batch, p.cannabinoids, p.terpenes
    FROM s
    JOIN catalog_products p ON p.id = s.id
    JOIN o ON o.id = s.id
), n AS (
  SELECT id, prices, stock FROM c WHERE returned OR price_changed OR stock_changed OR potency_changed
), ended AS (
  INSERT INTO product_history (product_id, seen_from, seen_to, ended_at, dispensary_id, present, quantity_capped, quantity, stock_status,
         price_rec, price_rec_special, price_med, price_med_special, thc_lo, thc_hi, thc_unit, cbd_lo, cbd_hi, cbd_unit, prices, stock)
  SELECT p.id, p.state_from, coalesce(p.state_seen_to, %(previous)s), %(crawled_at)s, p.dispensary_id, p.present, p.quantity_capped, p.quantity,
         p.stock_status, p.price_rec, p.price_rec_special, p.price_med, p.price_med_special, p.thc_lo, p.thc_hi, p.thc_unit,
         p.cbd_lo, p.cbd_hi, p.cbd_unit, n.prices::text::json, n.stock::text::json
    FROM catalog_products p JOIN n ON n.id = p.id
), details_ended AS (
  INSERT INTO product_detail_history (product_id, seen_from, ended_at, quantity_sold, details_kept, batch, cannabinoids, terpenes)
  SELECT c.id, c.details_from, %(crawled_at)s, c.quantity_sold, k.kept, CASE WHEN NOT k.kept THEN c.batch::text::json END,
         CASE WHEN NOT k.kept THEN c.cannabinoids::text::json END, CASE WHEN NOT k.kept THEN c.terpenes::text::json END
    FROM c
   CROSS JOIN LATERAL (SELECT coalesce(c.batch, c.cannabinoids, c.terpenes) IS NOT NULL AS said) d
   CROSS JOIN LATERAL (SELECT d.said AND NOT c.details_changed AS kept) k
   WHERE (c.details_changed OR c.sold_changed) AND (d.said OR c.quantity_sold IS NOT NULL)
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
         subcategory_canon = s.subcategory_canon, strain_canon = s.strain_canon, terpenes = s.terpenes, batch = s.batch,
         quantity_sold = s.quantity_sold, brand_description_hash = s.brand_description_hash, consecutive_misses = 0, last_seen_at = NULL,
         details_from = CASE WHEN c.details_changed OR c.sold_changed THEN %(crawled_at)s ELSE p.details_from END,
         state_seen_to = NULL, present = true,
         state_from = CASE WHEN n.id IS NULL THEN p.state_from ELSE %(crawled_at)s END,
         changed_at = CASE WHEN n.id IS NOT NULL OR c.text_changed OR c.details_changed THEN %(crawled_at)s ELSE p.changed_at END
    FROM s JOIN c ON c.id = s.id LEFT JOIN n ON n.id = s.id
   WHERE p.id = s.id
)
SELECT count(*) FILTER (WHERE price_changed OR stock_changed OR potency_changed OR text_changed OR details_changed) AS changed,
       count(*) FILTER (WHERE returned) AS returned,
       count(*) FILTER (WHERE price_changed) AS price_changes,
       count(*) FILTER (WHERE stock_changed) AS stock_changes,
       count(*) FILTER (WHERE newly_oos) AS out_of_stock,
       count(*) AS found
  FROM c;

-- name: record_gaps
-- Products that this crawl has no state for: their misses now, and when they were last seen. Their state was last seen by the crawl before.
UPDATE catalog_products p
   SET consecutive_misses = u.misses, last_seen_at = coalesce(u.seen, p.last_seen_at, %(previous)s),
       state_seen_to = CASE WHEN p.present THEN coalesce(p.state_seen_to, %(previous)s) END
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
  INSERT INTO product_history (product_id, seen_from, seen_to, ended_at, dispensary_id, present, quantity_capped, quantity, stock_status,
         price_rec, price_rec_special, price_med, price_med_special, thc_lo, thc_hi, thc_unit, cbd_lo, cbd_hi, cbd_unit, prices, stock)
  SELECT p.id, p.state_from, p.state_seen_to, %(crawled_at)s, p.dispensary_id, true, p.quantity_capped, p.quantity, p.stock_status, p.price_rec,
         p.price_rec_special, p.price_med, p.price_med_special, p.thc_lo, p.thc_hi, p.thc_unit, p.cbd_lo, p.cbd_hi, p.cbd_unit,
         option_prices(p.variants)::text::json, g.stock_before::text::json
    FROM gone g JOIN catalog_products p ON p.id = g.id WHERE p.present
), updated AS (
  UPDATE catalog_products p
     SET consecutive_misses = 3, stock_status = 'oos', is_in_stock = false, quantity = 0, quantity_capped = false,
         state_from = CASE WHEN p.present THEN %(crawled_at)s ELSE p.state_from END, state_seen_to = NULL, present = false,
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
SELECT ensure_product_history_partition(%(instant)s);
