-- History of products and past menus, in the database and in files.

-- name: product_states
-- What a product cost, how much there was and how strong it was, newest first; `to` is null while a state lasts. A state is in force until the
-- next one begins, though its last crawl was earlier: `since` has the one that was in force then. `packed` are its
-- states that were moved to files, as rows of the table; one that is in both places is there once.
SELECT s.seen_from AS from_, s.seen_to AS to, s.present,
       effective_price(s.price_rec, s.price_rec_special, s.price_med, s.price_med_special) AS price,
       s.price_rec, s.price_rec_special, s.price_med, s.price_med_special,
       prices_by_option(s.prices) AS prices,
       s.stock_status, s.quantity, s.quantity_capped,
       stock_by_option(s.stock) AS stock,
       CASE WHEN s.thc_lo IS NOT NULL THEN json_build_object('lo', s.thc_lo, 'hi', s.thc_hi, 'unit', s.thc_unit) END AS thc,
       CASE WHEN s.cbd_lo IS NOT NULL THEN json_build_object('lo', s.cbd_lo, 'hi', s.cbd_hi, 'unit', s.cbd_unit) END AS cbd
  FROM (SELECT u.*, lag(u.seen_from) OVER (ORDER BY u.seen_from DESC) AS next_from
          FROM (SELECT * FROM product_states WHERE product_id = %(id)s
                UNION SELECT * FROM jsonb_populate_recordset(NULL::product_states, %(packed)s::jsonb)) u) s
 WHERE (%(since)s::timestamptz IS NULL OR s.next_from IS NULL OR s.next_from > %(since)s)
   AND (%(until)s::timestamptz IS NULL OR s.seen_from < %(until)s)
   AND (%(after)s::timestamptz IS NULL OR s.seen_from < %(after)s)
 ORDER BY s.seen_from DESC LIMIT %(limit)s;

-- name: product_details
-- Batches, lab values and sold counts of a product, newest first; `to` is null for the current ones.
SELECT d.seen_from AS from_, d.ended_at AS to, d.batch, coalesce(d.cannabinoids, '[]') AS cannabinoids,
       coalesce(d.terpenes, '[]') AS terpenes, d.quantity_sold
  FROM product_details d
 WHERE d.product_id = %(id)s
   AND (%(since)s::timestamptz IS NULL OR d.ended_at IS NULL OR d.ended_at > %(since)s)
   AND (%(until)s::timestamptz IS NULL OR d.seen_from < %(until)s)
   AND (%(after)s::timestamptz IS NULL OR d.seen_from < %(after)s)
 ORDER BY d.seen_from DESC LIMIT %(limit)s;

-- name: product_gaps
-- Times of which nothing is known. `absent`: the store was crawled, and the product was in none of the menus. `unobserved`: the store
-- was not crawled for more than twice its interval. A gap reaches from the last crawl before it to the first one after it.
WITH product AS (
  SELECT p.dispensary_id, p.first_seen_at, 2 * d.crawl_interval_hours * interval '1 hour' AS longest
    FROM catalog_products p JOIN dispensaries d ON d.id = p.dispensary_id WHERE p.id = %(id)s
), spans AS (
  SELECT present, seen_to, lead(seen_from) OVER (ORDER BY seen_from) AS next_from
    FROM (SELECT present, seen_from, seen_to FROM product_states WHERE product_id = %(id)s
          UNION SELECT present, seen_from, seen_to FROM jsonb_populate_recordset(NULL::product_states, %(packed)s::jsonb)) s
), crawls AS (
  SELECT c.crawled_at, lead(c.crawled_at) OVER (ORDER BY c.crawled_at) AS next_at
    FROM store_crawls c JOIN product p ON p.dispensary_id = c.dispensary_id AND c.crawled_at >= p.first_seen_at
), gaps AS (
  SELECT 'absent' AS reason, s.seen_to AS "from", s.next_from AS "to"
    FROM spans s
   WHERE s.present AND s.seen_to IS NOT NULL
     AND EXISTS (SELECT FROM crawls c WHERE c.crawled_at > s.seen_to AND (s.next_from IS NULL OR c.crawled_at < s.next_from))
  UNION ALL
  SELECT 'unobserved', c.crawled_at, c.next_at
    FROM crawls c, product p
   WHERE coalesce(c.next_at, now()) - c.crawled_at > p.longest
)
SELECT "from" AS from_, "to", reason FROM gaps
 WHERE (%(since)s::timestamptz IS NULL OR "to" IS NULL OR "to" > %(since)s)
   AND (%(until)s::timestamptz IS NULL OR "from" < %(until)s)
 ORDER BY "from" DESC, reason;

-- name: price_spans
-- When several products had which prices and which stock, oldest first: states that differ in nothing else are one span. A span reaches to the
-- next one, or to its last crawl (a minute at least) where the product was missing for longer than three intervals then or until its removal was
-- noted. The last one reaches to the present.
WITH product AS MATERIALIZED (
  SELECT p.id, p.dispensary_id, 2 * d.crawl_interval_hours * interval '1 hour' AS longest
    FROM catalog_products p JOIN dispensaries d ON d.id = p.dispensary_id WHERE p.id = ANY (%(ids)s::bigint[])
), states AS (
  SELECT product_id, seen_from, seen_to, present, prices, jsonb_path_query_array(stock, '$[*][0, 1]') AS stock
    FROM product_states WHERE product_id = ANY (%(ids)s::bigint[])
   UNION ALL
  SELECT product_id, seen_from, seen_to, present, prices, jsonb_path_query_array(stock, '$[*][0, 1]')
    FROM (SELECT DISTINCT ON (product_id, seen_from) * FROM jsonb_populate_recordset(NULL::product_states, %(packed)s::jsonb)) f
   WHERE NOT EXISTS (SELECT FROM product_history h WHERE h.product_id = f.product_id AND h.seen_from = f.seen_from)
), spans AS (
  SELECT s.product_id, s.seen_from, s.next_from, s.present, s.prices, s.stock, p.dispensary_id,
         CASE WHEN s.seen_to IS NULL THEN %(now)s
              WHEN s.next_present AND s.next_from - s.seen_to <= 1.5 * p.longest THEN s.next_from
              ELSE greatest(s.seen_to, s.seen_from + interval '1 minute') END AS until
    FROM (SELECT *, lead(seen_from) OVER w AS next_from, lead(present) OVER w AS next_present
            FROM states WINDOW w AS (PARTITION BY product_id ORDER BY seen_from)) s
    JOIN product p ON p.id = s.product_id
   WHERE %(since)s::timestamptz IS NULL OR s.seen_to IS NULL OR coalesce(s.next_from, s.seen_to) >= %(since)s
), marked AS (
  SELECT *, lag(until) OVER w AS former_until,
         (seen_from, present, prices, stock) IS DISTINCT FROM (lag(until) OVER w, lag(present) OVER w, lag(prices) OVER w, lag(stock) OVER w) AS begins
    FROM spans WINDOW w AS (PARTITION BY product_id ORDER BY seen_from)
), kept AS (
  SELECT *, lead(begins) OVER w AS next_begins, lead(former_until) OVER w AS last_until, lead(until) OVER w AS next_until
    FROM marked WHERE begins OR next_from IS NULL WINDOW w AS (PARTITION BY product_id ORDER BY seen_from)
)
SELECT product_id, dispensary_id AS store_id, seen_from AS from_,
       CASE WHEN next_begins THEN last_until ELSE coalesce(next_until, until) END AS until, present, prices, stock
  FROM kept WHERE begins ORDER BY product_id, seen_from;

-- name: unobserved
-- When stores were not crawled for more than twice their interval: from a minute after the last crawl, whose menu was seen for a moment.
SELECT store_id, "from" + interval '1 minute' AS from_, "to" FROM (
  SELECT d.id AS store_id, 2 * d.crawl_interval_hours * interval '1 hour' AS longest, c.crawled_at AS "from",
         lead(c.crawled_at) OVER (PARTITION BY d.id ORDER BY c.crawled_at) AS "to"
    FROM dispensaries d JOIN store_crawls c ON c.dispensary_id = d.id
   WHERE d.id = ANY (%(stores)s::integer[]) AND (%(since)s::timestamptz IS NULL OR c.crawled_at >= %(since)s::timestamptz - interval '30 days')) g
 WHERE coalesce("to", %(now)s::timestamptz) - "from" > longest AND (%(since)s::timestamptz IS NULL OR coalesce("to", %(now)s) > %(since)s)
 ORDER BY store_id, "from";

-- name: product_snapshots
-- One row per crawl that saw the product, newest first: store_product_snapshots of one product, and of its packed states.
SELECT c.crawled_at, c.payload_id, s.seen_from AS state_since,
       effective_price(s.price_rec, s.price_rec_special, s.price_med, s.price_med_special) AS price,
       s.price_rec, s.price_rec_special, s.price_med, s.price_med_special,
       prices_by_option(s.prices) AS prices,
       s.stock_status, CASE s.stock_status WHEN 'in_stock' THEN true WHEN 'oos' THEN false END AS is_in_stock, s.quantity, s.quantity_capped,
       stock_by_option(s.stock) AS stock,
       CASE WHEN s.thc_lo IS NOT NULL THEN json_build_object('lo', s.thc_lo, 'hi', s.thc_hi, 'unit', s.thc_unit) END AS thc,
       CASE WHEN s.cbd_lo IS NOT NULL THEN json_build_object('lo', s.cbd_lo, 'hi', s.cbd_hi, 'unit', s.cbd_unit) END AS cbd
  FROM (SELECT * FROM product_states WHERE product_id = %(id)s
        UNION SELECT * FROM jsonb_populate_recordset(NULL::product_states, %(packed)s::jsonb)) s
  JOIN catalog_products p ON p.id = s.product_id
  JOIN store_crawls c ON c.dispensary_id = p.dispensary_id AND c.crawled_at >= s.seen_from
                     AND (s.seen_to IS NULL OR c.crawled_at <= s.seen_to)
 WHERE s.present
   AND (%(since)s::timestamptz IS NULL OR c.crawled_at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR c.crawled_at < %(until)s)
   AND (%(after)s::timestamptz IS NULL OR c.crawled_at < %(after)s)
 ORDER BY c.crawled_at DESC LIMIT %(limit)s;

-- name: crawl_at
-- The crawl whose menu was the newest one at an instant.
SELECT crawled_at, payload_id FROM store_crawls
 WHERE dispensary_id = %(dispensary_id)s AND crawled_at <= %(instant)s::timestamptz ORDER BY crawled_at DESC LIMIT 1;

-- name: store_at
-- What a store offered at an instant: each product's state then, as the crawl before it saw it, if it was on the menu. `packed` are the
-- store's states that were moved to files.
WITH seen AS MATERIALIZED (
  SELECT max(c.crawled_at) AS at FROM store_crawls c
   WHERE c.dispensary_id = %(dispensary_id)s AND c.crawled_at <= %(instant)s::timestamptz
), states AS (
  SELECT s.* FROM product_history s WHERE s.dispensary_id = %(dispensary_id)s AND s.ended_at > %(instant)s::timestamptz
   UNION ALL
  SELECT f.* FROM jsonb_populate_recordset(NULL::product_history, %(packed)s::jsonb) f
   WHERE %(packed)s::jsonb <> '[]' AND f.ended_at > %(instant)s::timestamptz
), offered AS (
  -- A state that is in a file and in the table as well is there once.
  SELECT DISTINCT ON (product_id) product_id, seen_from, seen_to, price_rec, price_rec_special, price_med, price_med_special, stock_status,
         quantity, quantity_capped
    FROM states, seen WHERE present AND seen_from <= seen.at AND seen_to >= seen.at
   UNION ALL
  SELECT p.id, p.state_from, p.state_seen_to, p.price_rec, p.price_rec_special, p.price_med, p.price_med_special, p.stock_status, p.quantity,
         p.quantity_capped
    FROM catalog_products p, seen
   WHERE p.dispensary_id = %(dispensary_id)s AND p.present AND p.state_from <= seen.at AND (p.state_seen_to IS NULL OR p.state_seen_to >= seen.at)
)
SELECT p.id AS product_id, p.provider_product_id, p.name, p.brand_name, p.category, p.category_canon, o.seen_from AS from_,
       o.seen_to AS "to", effective_price(o.price_rec, o.price_rec_special, o.price_med, o.price_med_special) AS price, o.price_rec, o.price_rec_special,
       o.price_med, o.price_med_special, o.stock_status, o.quantity, o.quantity_capped, i.canonical_product_id, i.brand_id,
       (SELECT l.location_id FROM store_locations l WHERE l.dispensary_id = %(dispensary_id)s) AS location_id
  FROM offered o JOIN catalog_products p ON p.id = o.product_id
  LEFT JOIN product_identities i ON i.product_id = p.id
 WHERE p.dispensary_id = %(dispensary_id)s
 ORDER BY p.name, p.id;
