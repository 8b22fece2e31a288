-- Former rows on their way into the catalog: staged as they come, then taken store by store.

-- name: create_products
CREATE TEMPORARY TABLE IF NOT EXISTS former_products (
  old_id text, dispensary_id integer NOT NULL, product_id text NOT NULL, seen timestamptz, item text NOT NULL
);

-- name: create_snapshots
CREATE TEMPORARY TABLE IF NOT EXISTS former_snapshots (
  n bigint, dispensary_id integer, product_id text, old_product text, at timestamptz NOT NULL, item text, place text
);

-- name: empty
TRUNCATE former_products, former_snapshots;

-- name: index_old_products
CREATE INDEX IF NOT EXISTS former_products_old ON former_products (old_id);

-- name: index_products
CREATE INDEX IF NOT EXISTS former_products_id ON former_products (dispensary_id, product_id);

-- name: index_snapshots
CREATE INDEX IF NOT EXISTS former_snapshots_store ON former_snapshots (dispensary_id, at, n);

-- name: analyze
ANALYZE former_products, former_snapshots;

-- name: doubled
-- Of several rows for one product the last one counts.
DELETE FROM former_products p USING former_products o
 WHERE o.dispensary_id = p.dispensary_id AND o.product_id = p.product_id AND o.ctid > p.ctid
RETURNING p.product_id;

-- name: name_products
-- A snapshot that names its product by the number of the former row is of the product that this row was of.
UPDATE former_snapshots s
   SET dispensary_id = coalesce(s.dispensary_id, p.dispensary_id),
       product_id = coalesce(s.product_id, p.product_id)
  FROM former_products p
 WHERE (s.product_id IS NULL OR s.dispensary_id IS NULL) AND p.old_id = s.old_product;

-- name: unknown_products
-- Snapshots of what has no row.
DELETE FROM former_snapshots WHERE product_id IS NULL OR dispensary_id IS NULL RETURNING place, old_product;

-- name: unseen_products
-- Products that no snapshot tells of, in stores that have some: nothing says on which menus they were.
SELECT p.product_id FROM former_products p
 WHERE EXISTS (SELECT FROM former_snapshots s WHERE s.dispensary_id = p.dispensary_id)
   AND NOT EXISTS (SELECT FROM former_snapshots s WHERE s.dispensary_id = p.dispensary_id AND s.product_id = p.product_id);

-- name: last_menus
-- Of a store without any snapshot, its products as they were last seen are its only menu: those of its last day.
INSERT INTO former_snapshots (dispensary_id, product_id, at, item)
SELECT p.dispensary_id, p.product_id, m.at, p.item
  FROM former_products p
  JOIN (SELECT dispensary_id, max(seen) AS at FROM former_products GROUP BY 1) m ON m.dispensary_id = p.dispensary_id
 WHERE p.seen > m.at - interval '1 day'
   AND NOT EXISTS (SELECT FROM former_snapshots s WHERE s.dispensary_id = p.dispensary_id);

-- name: former_stores
SELECT DISTINCT dispensary_id FROM former_snapshots ORDER BY 1;

-- name: months_of
SELECT DISTINCT date_trunc('month', at, 'UTC') FROM former_snapshots WHERE dispensary_id = %(id)s;

-- name: own_months
SELECT DISTINCT date_trunc('month', crawled_at, 'UTC') FROM store_crawls WHERE dispensary_id = %(id)s;

-- name: rows_of
-- A store's snapshots, the oldest first, with the words of their product's row.
SELECT s.n, s.at, s.product_id, s.item, p.item AS product
  FROM former_snapshots s
  LEFT JOIN former_products p ON p.dispensary_id = s.dispensary_id AND p.product_id = s.product_id
 WHERE s.dispensary_id = %(id)s ORDER BY s.at, s.n;

-- name: standing
-- What is known of the store: the first crawl of ours, and those that were taken over.
SELECT min(crawled_at) FILTER (WHERE NOT warnings @> %(mark)s::jsonb) AS own,
       coalesce(array_agg(crawled_at) FILTER (WHERE warnings @> %(mark)s::jsonb), '{}') AS taken
  FROM store_crawls WHERE dispensary_id = %(id)s;

-- name: mark
UPDATE store_crawls SET warnings = warnings || %(mark)s::jsonb WHERE dispensary_id = %(id)s AND crawled_at = %(at)s;

-- name: make_aside
-- Where a store's earlier history is put together before it is joined to the later one.
INSERT INTO dispensaries (platform, name, name_raw, crawl_enabled)
SELECT platform, name, name_raw, false FROM dispensaries WHERE id = %(id)s RETURNING id;

-- name: move_crawls
INSERT INTO store_crawls (dispensary_id, crawled_at, products, new_products, changed, unchanged, returned, missing, out_of_stock,
       price_changes, stock_changes, warnings)
SELECT %(id)s, crawled_at, products, new_products, changed, unchanged, returned, missing, out_of_stock, price_changes, stock_changes,
       warnings FROM store_crawls WHERE dispensary_id = %(aside)s;

-- name: first_crawls
-- The first crawls of ours: as many as it takes until what is absent is out of stock.
SELECT crawled_at FROM store_crawls WHERE dispensary_id = %(id)s AND crawled_at >= %(own)s ORDER BY crawled_at LIMIT 3;

-- name: join_states
-- Products of the earlier history that the later one begins with at or before `at`: the state that they were in ended when the later one
-- first saw them.
INSERT INTO product_history (product_id, seen_from, seen_to, ended_at, dispensary_id, present, quantity_capped, quantity, stock_status,
       price_rec, price_rec_special, price_med, price_med_special, thc_lo, thc_hi, thc_unit, cbd_lo, cbd_hi, cbd_unit, prices, stock)
SELECT r.id, s.state_from,
       coalesce(s.state_seen_to, (SELECT max(c.crawled_at) FROM store_crawls c WHERE c.dispensary_id = %(id)s AND c.crawled_at < r.first_seen_at)),
       r.first_seen_at, %(id)s, s.present, s.quantity_capped, s.quantity, s.stock_status, s.price_rec, s.price_rec_special, s.price_med,
       s.price_med_special, s.thc_lo, s.thc_hi, s.thc_unit, s.cbd_lo, s.cbd_hi, s.cbd_unit, option_prices(s.variants)::text::json,
       option_stock(s.variants)::text::json
  FROM catalog_products s
  JOIN catalog_products r ON r.dispensary_id = %(id)s AND r.provider = s.provider AND r.provider_product_id = s.provider_product_id
 WHERE s.dispensary_id = %(aside)s AND r.first_seen_at <= %(at)s;

-- name: join_product_history
UPDATE product_history h SET product_id = r.id, dispensary_id = %(id)s
  FROM catalog_products s
  JOIN catalog_products r ON r.dispensary_id = %(id)s AND r.provider = s.provider AND r.provider_product_id = s.provider_product_id
 WHERE s.dispensary_id = %(aside)s AND r.first_seen_at <= %(at)s AND h.product_id = s.id;

-- name: join_products
WITH joined AS (
  DELETE FROM catalog_products s USING catalog_products r
   WHERE r.dispensary_id = %(id)s AND r.provider = s.provider AND r.provider_product_id = s.provider_product_id
     AND s.dispensary_id = %(aside)s AND r.first_seen_at <= %(at)s
  RETURNING r.id, s.first_seen_at
)
-- Former rows have no batch and no lab values: what the later history says of these holds from its own beginning.
UPDATE catalog_products r SET first_seen_at = j.first_seen_at,
       details_from = CASE WHEN coalesce(r.batch, r.cannabinoids, r.terpenes) IS NOT NULL OR r.quantity_sold IS NOT NULL
                           THEN coalesce(r.details_from, r.first_seen_at) ELSE r.details_from END
  FROM joined j WHERE r.id = j.id;

-- name: move_product_history
UPDATE product_history SET dispensary_id = %(id)s WHERE dispensary_id = %(aside)s;

-- name: move_products
-- The rest is what the later history never saw.
UPDATE catalog_products SET dispensary_id = %(id)s WHERE dispensary_id = %(aside)s;

-- name: date_first_crawl
UPDATE dispensaries SET first_crawled_at = (SELECT min(crawled_at) FROM store_crawls WHERE dispensary_id = %(id)s) WHERE id = %(id)s;

-- name: remove_aside
DELETE FROM dispensaries WHERE id = %(aside)s;

-- name: keep_from_packing
-- No month is packed while history is joined (catalog/history.sql, `begin_packing`).
SELECT pg_advisory_xact_lock_shared(hashtext('product_history are packed'));

-- name: ensure_partition
SELECT ensure_product_history_partition(%(instant)s);

-- name: add_schedule
INSERT INTO task_schedules (name, role, platform, enabled, interval_hours, priority, state_code, next_run_at)
VALUES (%(name)s, %(role)s, %(platform)s, %(enabled)s, %(interval_hours)s, %(priority)s, %(state_code)s, %(next_run_at)s)
ON CONFLICT (name) DO NOTHING;

-- name: store_folders
-- What the folders of former images are named after.
SELECT id, state, slug, name FROM dispensaries;

-- name: product_with_image
SELECT id, image_url, local_image_path FROM catalog_products
 WHERE dispensary_id = ANY (%(stores)s::integer[]) AND provider_product_id = %(product)s LIMIT 2;

-- name: brand_with_logo
SELECT id FROM image_references WHERE brand = %(brand)s AND status = 'stored';

-- name: image_of_url
SELECT sha256 FROM image_urls WHERE url = %(url)s AND status = 'stored';

-- name: drop_unstored_reference
DELETE FROM image_references WHERE (product_id = %(product_id)s::bigint OR brand = %(brand)s::text) AND status <> 'stored';

-- name: refer_to_image
INSERT INTO image_references (product_id, brand, url, status, url_id, path, settled_at)
VALUES (%(product_id)s, %(brand)s, %(url)s, 'stored', %(url_id)s, %(path)s, now());
