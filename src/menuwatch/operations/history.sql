-- History in the database and in files.

-- name: packable
-- The states of a month that nobody writes or compares with any more: each has a successor from before the boundary. Every product's
-- last state before it stays, because the next change is told against it. Numbers with more places than a file keeps stay as well.
SELECT s.*, p.dispensary_id, p.provider, p.provider_product_id
  FROM product_states s JOIN catalog_products p ON p.id = s.product_id
 WHERE s.seen_from >= %(month)s::timestamptz AND s.seen_from < %(next_month)s::timestamptz
   AND EXISTS (SELECT FROM product_states n
                WHERE n.product_id = s.product_id AND n.seen_from > s.seen_from AND n.seen_from < %(before)s::timestamptz)
   AND (s.price_rec, s.price_rec_special, s.price_med, s.price_med_special, s.thc_lo, s.thc_hi, s.cbd_lo, s.cbd_hi)
       IS NOT DISTINCT FROM (round(s.price_rec, 6), round(s.price_rec_special, 6), round(s.price_med, 6), round(s.price_med_special, 6),
                             round(s.thc_lo, 6), round(s.thc_hi, 6), round(s.cbd_lo, 6), round(s.cbd_hi, 6))
 ORDER BY s.product_id, s.seen_from;

-- name: create_packed
-- What a file holds, read back from it.
CREATE TEMPORARY TABLE IF NOT EXISTS packed_states (LIKE product_states) ON COMMIT DELETE ROWS;

-- name: read_back
INSERT INTO packed_states SELECT * FROM jsonb_populate_recordset(NULL::product_states, %(rows)s::jsonb);

-- name: delete_packed
-- Deletes the states that the file holds, each only where it is equal in every value to the one in the file.
DELETE FROM product_states s USING packed_states f
 WHERE s.product_id = f.product_id AND s.seen_from = f.seen_from
   AND s.seen_from >= %(month)s::timestamptz AND s.seen_from < %(next_month)s::timestamptz
   AND (s.seen_to, s.present, s.quantity_capped, s.quantity, s.stock_status, s.price_rec, s.price_rec_special, s.price_med,
        s.price_med_special, s.thc_lo, s.thc_hi, s.thc_unit, s.cbd_lo, s.cbd_hi, s.cbd_unit, s.prices, s.stock)
       IS NOT DISTINCT FROM
       (f.seen_to, f.present, f.quantity_capped, f.quantity, f.stock_status, f.price_rec, f.price_rec_special, f.price_med,
        f.price_med_special, f.thc_lo, f.thc_hi, f.thc_unit, f.cbd_lo, f.cbd_hi, f.cbd_unit, f.prices, f.stock);

-- name: store_at
-- What a store offered at an instant: each product's state then, if it was present.
SELECT p.id AS product_id, p.provider_product_id, p.name, p.brand_name, p.category_canon, s.seen_from AS "from", s.seen_to AS "to",
       s.price_rec, s.price_rec_special, s.price_med, s.price_med_special, s.stock_status, s.quantity, s.quantity_capped
  FROM catalog_products p
 CROSS JOIN LATERAL (SELECT * FROM product_states o WHERE o.product_id = p.id AND o.seen_from <= %(instant)s::timestamptz
                      ORDER BY o.seen_from DESC LIMIT 1) s
 WHERE p.dispensary_id = %(dispensary_id)s AND p.first_seen_at <= %(instant)s::timestamptz
   AND s.present AND (s.seen_to IS NULL OR s.seen_to >= (SELECT max(c.crawled_at) FROM store_crawls c
                       WHERE c.dispensary_id = %(dispensary_id)s AND c.crawled_at <= %(instant)s::timestamptz))
 ORDER BY p.name, p.id;
