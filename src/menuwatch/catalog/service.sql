-- Lists of products. Every list is a keyset page: the last row's sort values and id are the next page's
-- start, so a page costs the same wherever it lies and rows that are inserted meanwhile shift nothing.

-- piece: from_filtered_products
-- The products that a filter selects, for lists in every order.
FROM catalog_products p
WHERE (%(stores)s::integer[] IS NULL OR p.dispensary_id = ANY (%(stores)s))
AND (%(brands)s::text[] IS NULL OR p.brand_name = ANY (%(brands)s))
AND (%(categories)s::text[] IS NULL OR p.category = ANY (%(categories)s))
AND (%(strain_types)s::text[] IS NULL OR p.strain_type = ANY (%(strain_types)s))
AND (%(categories_canon)s::text[] IS NULL OR p.category_canon = ANY (%(categories_canon)s))
AND (%(subcategories_canon)s::text[] IS NULL OR p.subcategory_canon = ANY (%(subcategories_canon)s))
AND (%(strains_canon)s::text[] IS NULL OR p.strain_canon = ANY (%(strains_canon)s))
AND (%(stock)s::text[] IS NULL OR p.stock_status = ANY (%(stock)s))
AND (%(present)s::boolean IS NULL OR (p.last_seen_at IS NULL) = %(present)s)
AND (%(states)s::text[] IS NULL OR p.dispensary_id IN (SELECT d.id FROM dispensaries d WHERE d.state = ANY (%(states)s)))
AND (%(special)s::boolean IS NULL OR on_special(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special) = %(special)s)
AND (%(q)s::text IS NULL OR p.name ILIKE %(q)s)
AND (%(names)s::text[] IS NULL OR lower(p.name) = ANY (%(names)s))
AND (%(price_min)s::numeric IS NULL
       OR effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special) >= %(price_min)s)
AND (%(price_max)s::numeric IS NULL
       OR effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special) <= %(price_max)s)
AND (%(new_since)s::timestamptz IS NULL
       OR (p.changed_at >= %(new_since)s AND p.first_seen_at >= %(new_since)s
           AND p.first_seen_at > (SELECT d.first_crawled_at FROM dispensaries d WHERE d.id = p.dispensary_id)))
AND (%(gone_since)s::timestamptz IS NULL OR (p.changed_at >= %(gone_since)s AND p.last_seen_at IS NOT NULL))
AND (%(updated_since)s::timestamptz IS NULL OR p.changed_at >= %(updated_since)s)
AND {of_identity}

-- piece: of_identity
(%(listings)s::bigint[] IS NULL OR p.id = ANY (%(listings)s))

-- piece: product_price
effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special)

-- piece: product_columns
p.id, p.dispensary_id, d.name AS store, p.provider, p.provider_product_id, p.name, p.brand_name, p.category, p.subcategory,
p.strain_type, p.category_canon, p.subcategory_canon, p.strain_canon, currency_of(d.state) AS currency,
effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special) AS price,
p.price_rec, p.price_rec_special, p.price_med, p.price_med_special, p.stock_status, p.is_in_stock, p.quantity,
p.quantity_capped, p.variants,
CASE WHEN p.thc_lo IS NOT NULL THEN json_build_object('lo', p.thc_lo, 'hi', p.thc_hi, 'unit', p.thc_unit) END AS thc,
CASE WHEN p.cbd_lo IS NOT NULL THEN json_build_object('lo', p.cbd_lo, 'hi', p.cbd_hi, 'unit', p.cbd_unit) END AS cbd,
p.image_url, p.local_image_path, p.consecutive_misses, p.first_seen_at, p.last_seen_at, p.updated_at,
i.canonical_product_id, i.brand_id, l.location_id

-- piece: from_products
FROM store_products p
  JOIN dispensaries d ON d.id = p.dispensary_id
  LEFT JOIN product_identities i ON i.product_id = p.id
  LEFT JOIN store_locations l ON l.dispensary_id = p.dispensary_id

-- name: listings_and_menus
-- Looked up before a list is read: how many there are decides by which index it is best read.
SELECT CASE WHEN %(canonical_products)s::bigint[] IS NOT NULL OR %(brand_ids)s::integer[] IS NOT NULL
            THEN listings_of(%(canonical_products)s, %(brand_ids)s) END AS listings,
       CASE WHEN %(locations)s::integer[] IS NOT NULL THEN menus_at(%(locations)s) END AS menus,
       CASE WHEN %(meters)s::double precision IS NOT NULL
            THEN ARRAY (SELECT d.id FROM dispensaries d
                         WHERE distance_meters(%(latitude)s::double precision, %(longitude)s::double precision, d.latitude, d.longitude)
                               <= %(meters)s) END AS near;

-- name: names_with
-- Names of products that hold this text, of at least three characters. One may be there twice.
SELECT name FROM catalog_names WHERE trigrams(name) @> trigrams(lower(%(text)s::text)) AND name LIKE lower(%(pattern)s::text)
UNION ALL
SELECT name FROM catalog_new_names WHERE name LIKE lower(%(pattern)s::text)
LIMIT %(limit)s;

-- name: products_by_name
-- The price that is filtered and sorted by is what the cheapest option costs, specials included; medical only where there
-- is no recreational one; `present` asks for what the last crawl of the store holds. An order is a statement of its own, so that
-- each can have the index it needs.
SELECT p.id, lower(p.name) AS key
{from_filtered_products}
   AND (%(after_id)s::bigint IS NULL OR (lower(p.name), p.id) > (%(after_key)s::text, %(after_id)s))
 ORDER BY lower(p.name), p.id LIMIT %(limit)s;

-- name: products_by_price
-- Those that have a price, and (`priced` false) those that have none, by number: the others come after them, in an index that has both.
SELECT p.id, coalesce({product_price}, 'Infinity') AS key
{from_filtered_products}
   AND ({product_price} IS NOT NULL) = %(priced)s::boolean
   AND (%(after_id)s::bigint IS NULL OR %(priced)s
        OR p.id > %(after_id)s)
   AND (%(after_id)s IS NULL OR NOT %(priced)s
        OR ({product_price}, p.id) > (%(after_key)s::numeric, %(after_id)s))
 ORDER BY {product_price}, p.id LIMIT %(limit)s;

-- name: products_by_price_descending
SELECT p.id, coalesce({product_price}, '-Infinity') AS key
{from_filtered_products}
   AND ({product_price} IS NOT NULL) = %(priced)s::boolean
   AND (%(after_id)s::bigint IS NULL OR %(priced)s
        OR p.id < %(after_id)s)
   AND (%(after_id)s IS NULL OR NOT %(priced)s
        OR ({product_price}, p.id) < (%(after_key)s::numeric, %(after_id)s))
 ORDER BY {product_price} DESC, p.id DESC LIMIT %(limit)s;

-- name: products_by_updated
-- Newest change first. A product that changes while someone pages moves in front of where they are.
SELECT p.id, p.changed_at AS key
{from_filtered_products}
   AND (%(after_id)s::bigint IS NULL OR (p.changed_at, p.id) < (%(after_key)s::timestamptz, %(after_id)s))
 ORDER BY p.changed_at DESC, p.id DESC LIMIT %(limit)s;

-- name: products_in_brief
-- The products of those ids, in the order of the ids.
SELECT {product_columns}
  {from_products}
 WHERE p.id = ANY (%(ids)s::bigint[])
 ORDER BY array_position(%(ids)s::bigint[], p.id);

-- name: get_product
SELECT {product_columns},
       p.name_raw, p.brand_name_raw, p.status_raw, p.description,
       coalesce(p.cannabinoids, '[]') AS cannabinoids, coalesce(p.terpenes, '[]') AS terpenes, p.batch, p.quantity_sold,
       coalesce(p.specials, '[]') AS specials, coalesce(p.images, '[]') AS images,
       p.platform_created_at, p.platform_updated_at, p.extra
  {from_products}
 WHERE p.id = %(id)s;

-- name: totals
-- Brands or categories as they were counted last; none where the catalog is small.
SELECT name, products, in_stock, stores FROM catalog_totals
 WHERE kind = %(kind)s AND (%(q)s::text IS NULL OR name ILIKE %(q)s) AND (%(after)s::text IS NULL OR name > %(after)s)
 ORDER BY name LIMIT %(limit)s;

-- name: has_totals
SELECT EXISTS (SELECT FROM catalog_totals WHERE kind = %(kind)s) AS found;

-- name: brand_spellings
SELECT DISTINCT brand_name AS name FROM catalog_products WHERE lower(brand_name) = ANY (%(names)s::text[]);

-- name: list_brands
SELECT p.brand_name AS name, count(*) AS products, count(*) FILTER (WHERE p.is_in_stock) AS in_stock,
       count(DISTINCT p.dispensary_id) AS stores
  FROM catalog_products p
 WHERE p.brand_name IS NOT NULL
   AND (%(stores)s::integer[] IS NULL OR p.dispensary_id = ANY (%(stores)s))
   AND (%(q)s::text IS NULL OR p.brand_name ILIKE %(q)s)
   AND (%(after)s::text IS NULL OR p.brand_name > %(after)s)
 GROUP BY p.brand_name ORDER BY p.brand_name LIMIT %(limit)s;

-- name: list_categories
SELECT p.category AS name, count(*) AS products, count(*) FILTER (WHERE p.is_in_stock) AS in_stock,
       count(DISTINCT p.dispensary_id) AS stores
  FROM catalog_products p
 WHERE p.category IS NOT NULL
   AND (%(stores)s::integer[] IS NULL OR p.dispensary_id = ANY (%(stores)s))
   AND (%(q)s::text IS NULL OR p.category ILIKE %(q)s)
   AND (%(after)s::text IS NULL OR p.category > %(after)s)
 GROUP BY p.category ORDER BY p.category LIMIT %(limit)s;

-- name: set_timeout
SELECT set_config('statement_timeout', %(timeout)s::text, true);

-- name: facets
-- What the filters of a list of products would select, counted among the first few thousand. -- A facet's own choice does not narrow its own counts. `looked` is how many products were looked at.
WITH few AS MATERIALIZED (
  SELECT p.category_canon, p.strain_canon, p.stock_status, p.brand_name,
         coalesce(p.category_canon = ANY (%(categories_canon)s::text[]), %(categories_canon)s::text[] IS NULL) AS in_category,
         coalesce(p.strain_canon = ANY (%(strains_canon)s::text[]), %(strains_canon)s::text[] IS NULL) AS in_strain,
         coalesce(p.stock_status = ANY (%(stock)s::text[]), true) AS in_stock
    FROM catalog_products p
   WHERE (%(stores)s::integer[] IS NULL OR p.dispensary_id = ANY (%(stores)s))
     AND (%(states)s::text[] IS NULL OR p.dispensary_id IN (SELECT d.id FROM dispensaries d WHERE d.state = ANY (%(states)s)))
     AND (%(brands)s::text[] IS NULL OR (lower(p.brand_name) = ANY (%(brands_lower)s::text[]) AND p.brand_name = ANY (%(brands)s)))
     AND (%(present)s::boolean IS NULL OR (p.last_seen_at IS NULL) = %(present)s)
     AND (%(special)s::boolean IS NULL OR on_special(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special) = %(special)s)
     AND (%(names)s::text[] IS NULL OR lower(p.name) = ANY (%(names)s))
     AND (%(q)s::text IS NULL OR p.name ILIKE %(q)s)
     AND (%(price_min)s::numeric IS NULL
          OR {product_price} >= %(price_min)s)
     AND (%(price_max)s::numeric IS NULL
          OR {product_price} <= %(price_max)s)
     AND {of_identity}
   LIMIT %(most)s
)
SELECT 'all' AS facet, NULL AS value, count(*) FILTER (WHERE in_category AND in_strain AND in_stock) AS n, count(*) AS looked FROM few
 UNION ALL
(SELECT 'category', category_canon, count(*) FILTER (WHERE in_strain AND in_stock), 0 FROM few GROUP BY 2 ORDER BY 3 DESC, 2 LIMIT 40)
 UNION ALL
(SELECT 'strain', strain_canon, count(*) FILTER (WHERE in_category AND in_stock), 0 FROM few GROUP BY 2 ORDER BY 3 DESC, 2 LIMIT 20)
 UNION ALL
(SELECT 'stock', stock_status, count(*) FILTER (WHERE in_category AND in_strain), 0 FROM few GROUP BY 2 ORDER BY 3 DESC, 2 LIMIT 20)
 UNION ALL
(SELECT 'brand', brand_name, count(*) FILTER (WHERE in_category AND in_strain AND in_stock), 0 FROM few GROUP BY 2 ORDER BY 3 DESC, 2 LIMIT 60);
