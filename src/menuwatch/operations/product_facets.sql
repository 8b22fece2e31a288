-- What the filters of a list of products would select, counted among the first few thousand.

-- name: patience
SELECT set_config('statement_timeout', %(patience)s::text, true);

-- name: facets
-- A facet's own choice does not narrow its own counts. `looked` is how many products were looked at.
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
          OR effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special) >= %(price_min)s)
     AND (%(price_max)s::numeric IS NULL
          OR effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special) <= %(price_max)s)
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
