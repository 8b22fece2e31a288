-- History in the database and in files.

-- name: begin_packing
-- Before the transaction, which must see what those did that had to be waited for: stores that are being rebuilt.
SELECT pg_advisory_lock(hashtext('past_states are packed'));

-- name: end_packing
SELECT pg_advisory_unlock(hashtext('past_states are packed'));

-- name: packable
-- The states that ended in a month. Numbers with more places than a file keeps stay.
SELECT s.*, p.provider, p.provider_product_id
  FROM past_states s JOIN catalog_products p ON p.id = s.product_id
 WHERE s.ended_at >= %(month)s::timestamptz AND s.ended_at < %(next_month)s::timestamptz
   AND (s.price_rec, s.price_rec_special, s.price_med, s.price_med_special, s.thc_lo, s.thc_hi, s.cbd_lo, s.cbd_hi)
       IS NOT DISTINCT FROM (round(s.price_rec, 6), round(s.price_rec_special, 6), round(s.price_med, 6), round(s.price_med_special, 6),
                             round(s.thc_lo, 6), round(s.thc_hi, 6), round(s.cbd_lo, 6), round(s.cbd_hi, 6))
 ORDER BY s.product_id, s.ended_at;

-- name: create_packed
-- What a file holds, read back from it.
CREATE TEMPORARY TABLE IF NOT EXISTS packed_states (LIKE past_states) ON COMMIT DELETE ROWS;

-- name: read_back
INSERT INTO packed_states SELECT * FROM jsonb_populate_recordset(NULL::past_states, %(rows)s::jsonb);

-- name: delete_packed
-- Deletes the states that the file holds, each only where it is equal in every value to the one in the file.
DELETE FROM past_states s USING packed_states f
 WHERE s.product_id = f.product_id AND s.ended_at = f.ended_at
   AND s.ended_at >= %(month)s::timestamptz AND s.ended_at < %(next_month)s::timestamptz
   AND (s.seen_from, s.seen_to, s.dispensary_id, s.present, s.quantity_capped, s.quantity, s.stock_status, s.price_rec, s.price_rec_special, s.price_med,
        s.price_med_special, s.thc_lo, s.thc_hi, s.thc_unit, s.cbd_lo, s.cbd_hi, s.cbd_unit, s.prices::jsonb, s.stock::jsonb)
       IS NOT DISTINCT FROM
       (f.seen_from, f.seen_to, f.dispensary_id, f.present, f.quantity_capped, f.quantity, f.stock_status, f.price_rec, f.price_rec_special, f.price_med,
        f.price_med_special, f.thc_lo, f.thc_hi, f.thc_unit, f.cbd_lo, f.cbd_hi, f.cbd_unit, f.prices::jsonb, f.stock::jsonb);

-- name: crawl_at
-- The crawl whose menu was the newest one at an instant.
SELECT crawled_at, payload_id, products FROM store_crawls
 WHERE dispensary_id = %(dispensary_id)s AND crawled_at <= %(instant)s::timestamptz ORDER BY crawled_at DESC LIMIT 1;

-- name: store_at
-- What a store offered at an instant: each product's state then, as the crawl before it saw it, if it was on the menu. `packed` are the
-- store's states that were moved to files.
WITH seen AS MATERIALIZED (
  SELECT max(c.crawled_at) AS at FROM store_crawls c
   WHERE c.dispensary_id = %(dispensary_id)s AND c.crawled_at <= %(instant)s::timestamptz
), states AS (
  SELECT s.* FROM past_states s WHERE s.dispensary_id = %(dispensary_id)s AND s.ended_at > %(instant)s::timestamptz
   UNION ALL
  SELECT f.* FROM jsonb_populate_recordset(NULL::past_states, %(packed)s::jsonb) f
   WHERE f.ended_at > %(instant)s::timestamptz
), offered AS (
  -- A state that is in a file and in the table as well is there once.
  SELECT DISTINCT ON (product_id) product_id, seen_from, seen_to, price_rec, price_rec_special, price_med, price_med_special, stock_status,
         quantity, quantity_capped
    FROM states, seen WHERE present AND seen_from <= seen.at AND seen_to >= seen.at
   UNION ALL
  SELECT p.id, p.state_from, p.state_to, p.price_rec, p.price_rec_special, p.price_med, p.price_med_special, p.stock_status, p.quantity,
         p.quantity_capped
    FROM catalog_products p, seen
   WHERE p.dispensary_id = %(dispensary_id)s AND p.present AND p.state_from <= seen.at AND (p.state_to IS NULL OR p.state_to >= seen.at)
)
SELECT p.id AS product_id, p.provider_product_id, p.name, p.brand_name, p.category, p.category_canon, o.seen_from AS "from",
       o.seen_to AS "to", effective_price(o.price_rec, o.price_rec_special, o.price_med, o.price_med_special) AS price, o.price_rec, o.price_rec_special, o.price_med, o.price_med_special, o.stock_status, o.quantity, o.quantity_capped
  FROM offered o JOIN catalog_products p ON p.id = o.product_id
 WHERE p.dispensary_id = %(dispensary_id)s
 ORDER BY p.name, p.id;
