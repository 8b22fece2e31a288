-- The audit sample (audit.py).

-- name: sample
-- Random products of random stores, each draw on its own: a store may come more than once.
SELECT p.dispensary_id, p.id AS product_id, c.payload_id, p.provider, p.provider_product_id, f.path, f.sha256, f.raw_bytes,
       p.name, p.brand_name, p.category, p.category_canon, p.strain_canon, p.price_rec, p.price_rec_special, p.price_med,
       p.price_med_special, p.stock_status, p.quantity, p.thc_lo, p.thc_hi, p.thc_unit, p.cbd_lo, p.cbd_hi, p.image_url
  FROM generate_series(1, %(count)s::int) draw
 CROSS JOIN LATERAL (
   SELECT d.id, d.last_crawled_at FROM dispensaries d
     JOIN store_crawls s ON s.dispensary_id = d.id AND s.crawled_at = d.last_crawled_at AND s.payload_id IS NOT NULL
    WHERE s.products > 0 ORDER BY random() + 0 * draw LIMIT 1) d
  JOIN store_crawls c ON c.dispensary_id = d.id AND c.crawled_at = d.last_crawled_at
  JOIN raw_crawl_payloads f ON f.id = c.payload_id
 CROSS JOIN LATERAL (
   SELECT * FROM catalog_products p WHERE p.dispensary_id = d.id AND p.last_seen_at IS NULL ORDER BY random() + 0 * draw LIMIT 1) p;

-- name: keep
INSERT INTO quality_audits (dispensary_id, product_id, payload_id, field, value, found, result, detail, page, item_offset, item_length)
VALUES (%(dispensary_id)s, %(product_id)s, %(payload_id)s, %(field)s, %(value)s, %(found)s, %(result)s, %(detail)s, %(page)s, %(offset)s,
        %(length)s)
RETURNING id;

-- name: list_audits
SELECT a.id, a.audited_at, a.dispensary_id, d.name AS store, a.product_id, p.name, a.payload_id, a.field, a.value, a.found, a.result,
       a.detail, a.page, a.item_offset AS "offset", a.item_length AS length
  FROM quality_audits a JOIN dispensaries d ON d.id = a.dispensary_id JOIN catalog_products p ON p.id = a.product_id
 WHERE (%(ids)s::bigint[] IS NULL OR a.id = ANY (%(ids)s)) AND (%(before)s::bigint IS NULL OR a.id < %(before)s)
 ORDER BY a.id DESC LIMIT %(limit)s;

-- name: prune
DELETE FROM quality_audits WHERE audited_at < %(before)s;
