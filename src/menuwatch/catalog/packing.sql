-- Moving months of history to files.

-- name: begin_packing
-- Before the transaction, which must see what those did that had to be waited for: stores that are being rebuilt.
SELECT pg_advisory_lock(hashtext('product_history are packed'));

-- name: end_packing
SELECT pg_advisory_unlock(hashtext('product_history are packed'));

-- name: packable
-- The states that ended in a month. Numbers with more places than a file keeps stay.
SELECT s.*, p.provider, p.provider_product_id
  FROM product_history s JOIN catalog_products p ON p.id = s.product_id
 WHERE s.ended_at >= %(month)s::timestamptz AND s.ended_at < %(next_month)s::timestamptz
   AND (s.price_rec, s.price_rec_special, s.price_med, s.price_med_special, s.thc_lo, s.thc_hi, s.cbd_lo, s.cbd_hi)
       IS NOT DISTINCT FROM (round(s.price_rec, 6), round(s.price_rec_special, 6), round(s.price_med, 6), round(s.price_med_special, 6),
                             round(s.thc_lo, 6), round(s.thc_hi, 6), round(s.cbd_lo, 6), round(s.cbd_hi, 6))
 ORDER BY s.product_id, s.ended_at;

-- name: create_packed
-- What a file holds, read back from it.
CREATE TEMPORARY TABLE IF NOT EXISTS packed_states (LIKE product_history) ON COMMIT DELETE ROWS;

-- name: read_back
INSERT INTO packed_states SELECT * FROM jsonb_populate_recordset(NULL::product_history, %(rows)s::jsonb);

-- name: keep_revisions
-- For the rest of the transaction: states that are deleted stay what they were (db/…/15_catalog_history.sql).
SELECT set_config('menuwatch.packing', 'on', true);

-- name: delete_packed
-- Deletes the states that the file holds, each only where it is equal in every value to the one in the file.
DELETE FROM product_history s USING packed_states f
 WHERE s.product_id = f.product_id AND s.ended_at = f.ended_at
   AND s.ended_at >= %(month)s::timestamptz AND s.ended_at < %(next_month)s::timestamptz
   AND (s.seen_from, s.seen_to, s.dispensary_id, s.present, s.quantity_capped, s.quantity, s.stock_status, s.price_rec, s.price_rec_special, s.price_med,
        s.price_med_special, s.thc_lo, s.thc_hi, s.thc_unit, s.cbd_lo, s.cbd_hi, s.cbd_unit, s.prices::jsonb, s.stock::jsonb)
       IS NOT DISTINCT FROM
       (f.seen_from, f.seen_to, f.dispensary_id, f.present, f.quantity_capped, f.quantity, f.stock_status, f.price_rec, f.price_rec_special, f.price_med,
        f.price_med_special, f.thc_lo, f.thc_hi, f.thc_unit, f.cbd_lo, f.cbd_hi, f.cbd_unit, f.prices::jsonb, f.stock::jsonb);
