-- What a menu has taken from its store, asked in the transaction that has just applied it.

-- name: missing
-- Products that it lacks and that are not out of stock for longer already: but for those that a menu which a person released lacked as
-- well, and those that cannot be known, because the store gave no menu at all for long after they were last seen.
SELECT count(*) FROM catalog_products p
 WHERE dispensary_id = %(dispensary_id)s AND provider = %(provider)s AND last_seen_at IS NOT NULL
   AND (consecutive_misses BETWEEN 1 AND 2 OR consecutive_misses = 3 AND state_from = %(crawled_at)s)
   AND last_seen_at >= coalesce((SELECT max(fetched_at) FROM raw_crawl_payloads
                                  WHERE dispensary_id = %(dispensary_id)s AND released_at IS NOT NULL AND applied_at IS NOT NULL), '-infinity')
   AND EXISTS (SELECT FROM raw_crawl_payloads a
                WHERE a.dispensary_id = %(dispensary_id)s AND a.status <> 'rejected'
                  AND a.fetched_at > p.last_seen_at AND a.fetched_at < p.last_seen_at + %(silence)s::interval);

-- name: data_lost
-- Products on it that were in stock and are not, whose stock was known and is not, and products that have lost every price: by the
-- states that ended with it. (`product_changes` says the same, and unpacks every option for it.)
SELECT count(*) FILTER (WHERE o.stock_status = 'in_stock' AND p.stock_status <> 'in_stock') AS stock,
       count(*) FILTER (WHERE o.stock_status <> 'unknown' AND p.stock_status = 'unknown') AS unknown,
       count(*) FILTER (WHERE coalesce(o.price_rec, o.price_med) IS NOT NULL AND coalesce(p.price_rec, p.price_med) IS NULL) AS price
  FROM product_history o JOIN catalog_products p ON p.id = o.product_id AND p.state_from = o.ended_at AND p.present
 WHERE o.dispensary_id = %(dispensary_id)s AND o.ended_at = %(crawled_at)s AND p.provider = %(provider)s;

-- name: usual_owners
-- Which of these stores the store's products were said to be of before.
SELECT DISTINCT extra ->> 'dispensary_id' FROM catalog_products
 WHERE dispensary_id = %(dispensary_id)s AND provider = %(provider)s AND extra ->> 'dispensary_id' = ANY (%(owners)s::text[]);
