-- Brands and how menus write them.

-- name: known
SELECT a.alias, b.id, b.slug, b.name
  FROM brand_aliases a JOIN brands o ON o.id = a.brand_id JOIN brands b ON b.id = coalesce(o.merged_into, o.id)
 WHERE a.alias = ANY (%(aliases)s::text[]);

-- name: put_brands
INSERT INTO brands (slug, name)
SELECT n.slug, n.name FROM unnest(%(slugs)s::text[], %(names)s::text[]) n(slug, name)
 WHERE NOT EXISTS (SELECT FROM brands b WHERE b.slug = n.slug);

-- name: put_aliases
INSERT INTO brand_aliases (alias, spelling, brand_id, origin)
SELECT n.alias, n.spelling, coalesce(b.merged_into, b.id), 'spelling'
  FROM unnest(%(aliases)s::text[], %(spellings)s::text[], %(slugs)s::text[]) n(alias, spelling, slug) JOIN brands b ON b.slug = n.slug
    ON CONFLICT (alias) DO NOTHING;

-- name: rename
-- A brand is called as most listings write it. A name that no listing has was chosen by a person and stays.
WITH n AS (
  SELECT DISTINCT ON (n.id) n.id, n.spelling FROM (
    SELECT s.id, s.spelling, (SELECT count(*) FROM catalog_products p WHERE p.brand_name = s.spelling) AS listings
      FROM unnest(%(ids)s::integer[], %(spellings)s::text[]) s(id, spelling)) n
    JOIN brands b ON b.id = n.id
   CROSS JOIN LATERAL (SELECT count(*) AS listings FROM catalog_products p WHERE p.brand_name = b.name) o
   WHERE o.listings > 0 AND n.listings > o.listings
   ORDER BY n.id, n.listings DESC, n.spelling)
UPDATE brands b SET name = n.spelling FROM n WHERE b.id = n.id;

-- name: spellings
-- All spellings of brands in the catalog, by a walk along the index.
WITH RECURSIVE s(name) AS (
  SELECT min(brand_name) FROM catalog_products
   UNION ALL
  SELECT (SELECT min(p.brand_name) FROM catalog_products p WHERE p.brand_name > s.name) FROM s WHERE s.name IS NOT NULL)
SELECT name FROM s WHERE name IS NOT NULL;

-- name: rematch_stores
-- Listings with these spellings are outdated, and so are the stores that have them.
WITH outdated AS (
  UPDATE product_matches m SET source_version = m.source_version + 1 FROM catalog_products p
   WHERE p.id = m.product_id AND p.brand_name = ANY (%(spellings)s::text[])
  RETURNING m.dispensary_id)
UPDATE match_stores s SET rules_version = %(mark)s WHERE s.dispensary_id IN (SELECT dispensary_id FROM outdated);
