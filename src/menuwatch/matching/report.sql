-- What the matcher did, for people.

-- name: listings
SELECT p.id AS product_id, p.name, p.brand_name AS brand, coalesce(p.category_canon, p.category) AS category, d.id AS store_id, d.name AS store,
       d.platform, coalesce(m.sizes, '{}') AS sizes, coalesce(m.platform_ids, '{}') AS platform_ids, m.canonical_product_id,
       m.signature_id, s.key::text AS key, s.block, s.parsed AS signature
  FROM catalog_products p JOIN dispensaries d ON d.id = p.dispensary_id
  LEFT JOIN product_matches m ON m.product_id = p.id LEFT JOIN match_signatures s ON s.id = m.signature_id
 WHERE p.id = ANY (%(ids)s::bigint[]);

-- name: links
SELECT id, linked_to, confidence, reasons, parsed ->> 'name' AS name FROM match_signatures WHERE canonical_product_id = %(id)s;

-- name: review
SELECT confidence, reasons FROM match_reviews WHERE (a, b) = (least(%(a)s::bigint, %(b)s::bigint), greatest(%(a)s::bigint, %(b)s::bigint));

-- name: correction
SELECT same FROM match_corrections
 WHERE withdrawn_at IS NULL AND (a_key, b_key) = (least(%(a)s::uuid, %(b)s::uuid), greatest(%(a)s::uuid, %(b)s::uuid));

-- name: block
SELECT parsed::text FROM match_signatures WHERE block = ANY (%(blocks)s::text[]);

-- name: stats
-- Least and greatest, since counting distinct stores and platforms sorts all links.
WITH waiting AS MATERIALIZED (
  SELECT count(*) AS stores, extract(epoch FROM now() - min(d.last_crawled_at))::double precision AS seconds
    FROM dispensaries d LEFT JOIN match_stores s ON s.dispensary_id = d.id
   WHERE d.last_crawled_at IS NOT NULL AND (d.last_crawled_at, %(rules)s::integer) IS DISTINCT FROM (s.crawled_at, s.rules_version)),
matched AS MATERIALIZED (
  SELECT m.canonical_product_id AS id, count(*) AS listings, min(m.dispensary_id) < max(m.dispensary_id) AS is_shared,
         min(d.platform) < max(d.platform) AS is_on_platforms
    FROM product_matches m LEFT JOIN dispensaries d ON d.id = m.dispensary_id WHERE m.canonical_product_id IS NOT NULL GROUP BY 1)
SELECT coalesce(sum(listings), 0)::bigint AS listings, (SELECT count(*) FROM catalog_products) - coalesce(sum(listings), 0)::bigint AS waiting_listings,
       count(*) AS products, coalesce(sum(listings) FILTER (WHERE is_shared), 0)::bigint AS shared_listings,
       count(*) FILTER (WHERE is_shared) AS shared_products, count(*) FILTER (WHERE is_on_platforms) AS products_on_platforms,
       (SELECT count(*) FROM brands WHERE merged_into IS NULL) AS brands, (SELECT stores FROM waiting) AS waiting_stores,
       (SELECT seconds FROM waiting) AS lag_seconds,
       (SELECT count(*) FROM match_dirty_blocks) AS waiting_blocks, (SELECT count(*) FROM match_reviews WHERE skipped_at IS NULL) AS reviews,
       (SELECT count(*) FROM match_corrections WHERE withdrawn_at IS NULL) AS corrections
  FROM matched;

-- name: by_category
SELECT coalesce(category, 'other') AS name, sum(listings)::bigint AS listings, count(*) AS products,
       coalesce(sum(listings) FILTER (WHERE stores > 1), 0)::bigint AS shared_listings
  FROM canonical_products WHERE merged_into IS NULL AND listings > 0 GROUP BY 1 ORDER BY 2 DESC, 1;

-- name: by_platform
SELECT d.platform AS name, count(*) AS listings, count(DISTINCT c.id) AS products, count(*) FILTER (WHERE c.stores > 1) AS shared_listings
  FROM product_matches m JOIN canonical_products c ON c.id = m.canonical_product_id JOIN dispensaries d ON d.id = m.dispensary_id
 GROUP BY 1 ORDER BY 2 DESC, 1;

-- name: late
-- Stores whose new menu was not matched in time, and the age of the oldest of these menus.
SELECT count(*) AS stores, coalesce(extract(epoch FROM now() - min(d.last_crawled_at)), 0)::double precision AS seconds
  FROM dispensaries d LEFT JOIN match_stores s ON s.dispensary_id = d.id
 WHERE d.last_crawled_at < now() - make_interval(secs => %(late)s::double precision) AND d.last_crawled_at IS DISTINCT FROM s.crawled_at;
