-- One archived answer, and what has to do with it.

-- name: crawl_of
-- What the catalogue took from a payload.
SELECT c.crawled_at, c.products, c.new_products, c.changed, c.unchanged, c.returned, c.missing, c.out_of_stock, c.price_changes, c.stock_changes,
       jsonb_array_length(c.warnings) AS warnings
  FROM store_crawls c WHERE c.payload_id = %(id)s;

-- name: alike
-- The store's other payloads with the same answers, and which of them have the same file; the newest first.
SELECT o.id, o.path = y.path AS same_file FROM raw_crawl_payloads y
  JOIN raw_crawl_payloads o ON o.dispensary_id = y.dispensary_id AND o.content_sha256 = y.content_sha256 AND o.id <> y.id
 WHERE y.id = %(id)s ORDER BY o.fetched_at DESC, o.id DESC;
