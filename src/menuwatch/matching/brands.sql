-- Brands and how menus write them.

-- name: state
-- Changes with the aliases and where they lead.
SELECT concat_ws(',', (SELECT count(*) FROM brand_aliases), (SELECT sum(hashtextextended(alias || ' ' || brand_id || origin, 0)) FROM brand_aliases),
                 (SELECT sum(hashtextextended(id || ' ' || merged_into, 0)) FROM brands WHERE merged_into IS NOT NULL)) AS state;

-- name: aliases
SELECT a.alias, a.origin, b.slug
  FROM brand_aliases a JOIN brands o ON o.id = a.brand_id JOIN brands b ON b.id = coalesce(o.merged_into, o.id);

-- name: origins
SELECT alias, origin FROM brand_aliases WHERE alias = ANY (%(aliases)s::text[]);

-- name: put_brands
INSERT INTO brands (slug, name)
SELECT n.slug, n.name FROM unnest(%(slugs)s::text[], %(names)s::text[]) n(slug, name)
 WHERE NOT EXISTS (SELECT FROM brands b WHERE b.slug = n.slug);

-- name: put_aliases
INSERT INTO brand_aliases (alias, spelling, brand_id, origin)
SELECT n.alias, n.spelling, coalesce(b.merged_into, b.id), n.origin
  FROM unnest(%(aliases)s::text[], %(spellings)s::text[], %(slugs)s::text[], %(origins)s::text[]) n(alias, spelling, slug, origin)
  JOIN brands b ON b.slug = n.slug
    ON CONFLICT (alias) DO UPDATE SET spelling = excluded.spelling, origin = excluded.origin
 WHERE brand_aliases.origin = 'learned';

-- name: brand_names
-- Those that no person named.
SELECT slug, name FROM brands WHERE slug = ANY (%(slugs)s::text[]) AND NOT named_by_person;

-- name: count_spellings
-- As they were counted last where the catalog is large: counting a common one reads a page for each of its listings. What is not among those
-- counts is new, and rare.
SELECT s.spelling, coalesce((SELECT t.products FROM catalog_totals t WHERE t.kind = 'brand' AND t.name = s.spelling),
                            (SELECT count(*) FROM catalog_products p WHERE p.brand_name = s.spelling))
  FROM unnest(%(spellings)s::text[]) s(spelling);

-- name: rename
UPDATE brands b SET name = n.name FROM unnest(%(slugs)s::text[], %(names)s::text[]) n(slug, name)
 WHERE b.slug = n.slug AND NOT b.named_by_person;

-- name: names
-- Listings whose brand is read from their names, and that have one of these words there.
SELECT p.id, p.name FROM product_matches m JOIN catalog_products p ON p.id = m.product_id WHERE m.name_words && %(words)s::text[];

-- name: rematch_products
WITH outdated AS (
  UPDATE product_matches m SET source_version = m.source_version + 1 WHERE m.product_id = ANY (%(ids)s::bigint[]) RETURNING m.dispensary_id)
UPDATE match_stores s SET rules_version = 0 WHERE s.dispensary_id IN (SELECT dispensary_id FROM outdated);

-- name: spellings
-- All spellings of brands in the catalog, by a walk along the index.
WITH RECURSIVE s(name) AS (
  SELECT min(brand_name) FROM catalog_products
   UNION ALL
  SELECT (SELECT min(p.brand_name) FROM catalog_products p WHERE p.brand_name > s.name) FROM s WHERE s.name IS NOT NULL)
SELECT name FROM s WHERE name IS NOT NULL;

-- name: rematch_stores
-- Listings with these spellings or of products of these brands are outdated, and so are the stores that have them.
WITH outdated AS (
  UPDATE product_matches m SET source_version = m.source_version + 1
    FROM (SELECT p.id FROM catalog_products p WHERE p.brand_name = ANY (%(spellings)s::text[])
           UNION
          SELECT x.product_id FROM product_matches x JOIN canonical_products c ON c.id = x.canonical_product_id
           WHERE c.brand_id = ANY (%(brands)s::integer[])) o
   WHERE m.product_id = o.id
  RETURNING m.dispensary_id),
stores AS (
  UPDATE match_stores s SET rules_version = %(mark)s WHERE s.dispensary_id IN (SELECT dispensary_id FROM outdated))
SELECT count(*) AS listings FROM outdated;
