-- Which stores have a new menu, and which of their listings changed.

-- name: take_lock
-- One process at a time: what one adds to a block the other one would not see.
SELECT pg_try_advisory_lock(hashtext('product matching')) AS locked;

-- name: await_lock
SELECT pg_advisory_lock(hashtext('product matching'));

-- name: free_lock
SELECT pg_advisory_unlock(hashtext('product matching'));

-- name: analyze
ANALYZE match_signatures, product_matches, canonical_products, canonical_sizes, match_reviews;

-- name: changed_stores
-- Stores whose menu or rules are newer than those taken in, and removed stores.
SELECT coalesce(d.id, s.dispensary_id) AS id, d.last_crawled_at, coalesce(d.product_count, 0) AS products
  FROM dispensaries d FULL JOIN match_stores s ON s.dispensary_id = d.id
 WHERE coalesce(d.id, s.dispensary_id) <> ALL (%(exclude)s::integer[]) AND
       CASE WHEN d.last_crawled_at IS NULL THEN s.dispensary_id IS NOT NULL
            ELSE (d.last_crawled_at, %(rules)s::integer) IS DISTINCT FROM (s.crawled_at, s.rules_version) END
 ORDER BY d.last_crawled_at, 1 LIMIT %(limit)s;

-- name: stores
SELECT d.id, d.name, d.enterprise_id, d.last_crawled_at, s.rules_version
  FROM dispensaries d LEFT JOIN match_stores s ON s.dispensary_id = d.id WHERE d.id = ANY (%(ids)s::integer[]) AND d.last_crawled_at IS NOT NULL;

-- name: waiting_stores
-- All of `changed_stores`, and the menus that they have.
SELECT d.id, d.last_crawled_at FROM dispensaries d LEFT JOIN match_stores s ON s.dispensary_id = d.id
 WHERE d.last_crawled_at IS NOT NULL AND (d.last_crawled_at, %(rules)s::integer) IS DISTINCT FROM (s.crawled_at, s.rules_version);

-- name: listings
-- The stores' listings that are new or were changed in what they are matched by. Prices and stock are no part of it; that a listing is
-- on the menu is, because two listings that were never there together may be one product. Most did not change: what tells that reads
-- `extra` once, and `variants` without the objects that are made for those that did.
WITH changed AS MATERIALIZED (
  SELECT * FROM (
    SELECT c.id, m.dispensary_id, m.signature_id, m.sizes, m.platform_ids, m.source_version AS before,
           hashtextextended(ROW(c.dispensary_id, c.name, c.brand_name, c.category_canon, c.category, c.subcategory, c.strain_canon, c.strain_type,
             x.*, c.batch -> 'package_tag',
             CASE jsonb_array_length(c.variants)
               WHEN 1 THEN ROW(c.variants #> '{0,option}', c.variants #> '{0,weight_g}', c.variants #> '{0,content_mg}', c.variants #> '{0,pieces}')::text
               ELSE (SELECT jsonb_agg(jsonb_build_array(e -> 'option', e -> 'weight_g', e -> 'content_mg', e -> 'pieces') ORDER BY n)::text
                       FROM jsonb_array_elements(c.variants) WITH ORDINALITY v(e, n)) END,
             c.last_seen_at IS NULL, d.name, d.enterprise_id)::text, %(rules)s) AS source_version
      FROM catalog_products c JOIN dispensaries d ON d.id = c.dispensary_id
     CROSS JOIN LATERAL jsonb_to_record(c.extra) x(library_product_id jsonb, store_specific jsonb, sku jsonb, pos_id jsonb,
           enterprise_product_id jsonb, organization_id jsonb, package_ids jsonb, skus jsonb)
      LEFT JOIN product_matches m ON m.product_id = c.id
     WHERE c.dispensary_id = ANY (%(ids)s::integer[])) p
   WHERE before IS DISTINCT FROM source_version)
SELECT c.id, c.dispensary_id AS store_id, n.source_version, c.name, c.brand_name AS brand, coalesce(c.category_canon, c.category) AS category,
       c.subcategory, coalesce(c.strain_canon, c.strain_type) AS strain, c.provider, c.provider_product_id,
       jsonb_strip_nulls(jsonb_build_object(
         'library_product_id', c.extra -> 'library_product_id', 'store_specific', c.extra -> 'store_specific', 'sku', c.extra -> 'sku',
         'pos_id', c.extra -> 'pos_id', 'enterprise_product_id', c.extra -> 'enterprise_product_id',
         'organization_id', c.extra -> 'organization_id', 'package_tag', c.batch -> 'package_tag',
         'package_ids', c.extra -> 'package_ids', 'skus', c.extra -> 'skus')) AS ids,
       (SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object('option', e -> 'option', 'weight_g', e -> 'weight_g',
                                  'content_mg', e -> 'content_mg', 'pieces', e -> 'pieces')) ORDER BY o), '[]')
          FROM jsonb_array_elements(c.variants) WITH ORDINALITY v(e, o)) AS variants,
       c.last_seen_at IS NULL AS on_menu, n.dispensary_id, n.signature_id, s.key::text AS key, s.block, n.sizes, n.platform_ids
  FROM changed n JOIN catalog_products c ON c.id = n.id LEFT JOIN match_signatures s ON s.id = n.signature_id
 ORDER BY c.id;

-- name: put_signatures
INSERT INTO match_signatures (key, block, parsed)
SELECT n.key, n.block, n.parsed FROM json_to_recordset(%(rows)s::json) n(key uuid, block text, parsed json)
 WHERE NOT EXISTS (SELECT FROM match_signatures s WHERE s.key = n.key)
 ORDER BY n.key;

-- name: put_matches
-- A listing that lost its link, or never had one, but that a number was made for, has that number again.
INSERT INTO product_matches (product_id, dispensary_id, source_version, signature_id, canonical_product_id, platform_ids, sizes, name_words)
SELECT n.product_id, n.dispensary_id, n.source_version, s.id,
       (SELECT coalesce(c.merged_into, c.id) FROM canonical_products c WHERE c.anchor_product_id = n.product_id
         ORDER BY c.merged_into NULLS FIRST, c.id LIMIT 1), n.platform_ids, n.sizes, n.name_words
  FROM json_to_recordset(%(rows)s::json) n(product_id bigint, dispensary_id integer, source_version bigint, key uuid,
       platform_ids text[], sizes text[], name_words text[])
  JOIN match_signatures s ON s.key = n.key
 ORDER BY n.product_id
    ON CONFLICT (product_id) DO UPDATE SET dispensary_id = excluded.dispensary_id, source_version = excluded.source_version,
       signature_id = excluded.signature_id, platform_ids = excluded.platform_ids, sizes = excluded.sizes,
       name_words = excluded.name_words
RETURNING product_id, signature_id;

-- name: delete_matches
-- Links of listings that are no longer in the catalog.
WITH gone AS (
  DELETE FROM product_matches m
   WHERE m.dispensary_id = ANY (%(ids)s::integer[]) AND NOT EXISTS (SELECT FROM catalog_products p WHERE p.id = m.product_id)
  RETURNING m.signature_id, m.canonical_product_id)
SELECT s.block, s.id, g.canonical_product_id FROM gone g JOIN match_signatures s ON s.id = g.signature_id;

-- name: count_listings
-- Products without the listings that were removed, for those that have no other ones too.
UPDATE canonical_products c SET listings = n.listings, stores = n.stores, changed_at = now()
  FROM (SELECT i.id, count(m.product_id) AS listings, count(DISTINCT m.dispensary_id) AS stores
          FROM unnest(%(ids)s::bigint[]) i(id) LEFT JOIN product_matches m ON m.canonical_product_id = i.id GROUP BY i.id) n
 WHERE c.id = n.id AND (c.listings, c.stores) IS DISTINCT FROM (n.listings, n.stores);

-- name: stores_matched
INSERT INTO match_stores (dispensary_id, crawled_at, rules_version)
SELECT n.id, n.last_crawled_at, %(rules)s FROM json_to_recordset(%(stores)s::json) n(id integer, last_crawled_at timestamptz)
    ON CONFLICT (dispensary_id) DO UPDATE SET crawled_at = excluded.crawled_at, rules_version = excluded.rules_version, matched_at = now();

-- name: delete_stores
DELETE FROM match_stores WHERE dispensary_id = ANY (%(ids)s::integer[]);
