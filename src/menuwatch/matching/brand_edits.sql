-- Brands as people see and edit them.

-- name: list_brands
-- Brands by name. Products, listings and stores are counted only for the brands of the page.
SELECT b.id, b.slug, b.name, b.merged_into, t.name AS merged_into_name, s.spellings, n.products, n.listings, n.stores, lower(b.name) AS key
  FROM (SELECT * FROM brands b
         WHERE (%(id)s::integer IS NULL OR b.id = %(id)s)
           AND (%(q)s::text IS NULL OR b.name ILIKE %(q)s
                OR EXISTS (SELECT FROM brand_aliases a WHERE a.brand_id = b.id AND (a.spelling ILIKE %(q)s OR a.alias ILIKE %(q)s)))
           AND (%(merged)s::boolean IS NULL OR (b.merged_into IS NOT NULL) = %(merged)s)
           AND (%(after_id)s::integer IS NULL OR (lower(b.name), b.id) > (%(after_key)s::text, %(after_id)s))
         ORDER BY lower(b.name), b.id LIMIT %(limit)s) b
  LEFT JOIN brands t ON t.id = b.merged_into
  CROSS JOIN LATERAL (
    SELECT coalesce(json_agg(json_build_object('alias', a.alias, 'spelling', a.spelling, 'origin', a.origin) ORDER BY a.alias), '[]') AS spellings
      FROM brand_aliases a WHERE a.brand_id = b.id) s
  CROSS JOIN LATERAL (
    SELECT count(DISTINCT c.id) AS products, count(m.product_id) AS listings, count(DISTINCT m.dispensary_id) AS stores
      FROM canonical_products c LEFT JOIN product_matches m ON m.canonical_product_id = c.id
     WHERE c.brand_id = b.id AND c.merged_into IS NULL) n
 ORDER BY lower(b.name), b.id;

-- name: find_brand
-- By its id, its slug, its name or a spelling, in this order.
SELECT b.id, b.slug, b.name, b.merged_into
  FROM (SELECT id, 1 AS rank FROM brands WHERE id = %(id)s
         UNION ALL SELECT id, 2 FROM brands WHERE slug = %(slug)s
         UNION ALL SELECT id, 3 FROM brands WHERE lower(name) = lower(%(text)s)
         UNION ALL SELECT brand_id, 4 FROM brand_aliases WHERE alias = %(alias)s) x
  JOIN brands b USING (id) ORDER BY x.rank, b.id LIMIT 1;

-- name: lock_brands
SELECT id FROM brands WHERE id = ANY (%(ids)s::integer[]) ORDER BY id FOR UPDATE;

-- name: similar
-- Brands to name where one is unknown.
SELECT name FROM brands WHERE merged_into IS NULL AND name ILIKE %(q)s ORDER BY length(name), name LIMIT 3;

-- name: merge
UPDATE brands SET merged_into = %(into)s WHERE id = %(id)s;

-- name: move_aliases
-- An alias that came from a brand merged earlier keeps its origin, so that both merges can be undone.
UPDATE brand_aliases SET brand_id = %(into)s, origin = 'person', moved_from = coalesce(moved_from, %(id)s) WHERE brand_id = %(id)s
RETURNING spelling;

-- name: return_aliases
-- Aliases go back to the brand, with those of brands that had been merged into it.
WITH RECURSIVE part AS (SELECT %(id)s::integer AS id UNION SELECT b.id FROM brands b JOIN part ON b.merged_into = part.id)
UPDATE brand_aliases SET brand_id = %(id)s, moved_from = nullif(moved_from, %(id)s)
 WHERE brand_id = %(from)s AND moved_from IN (SELECT id FROM part)
RETURNING spelling;

-- name: alias
SELECT a.alias, a.spelling, a.brand_id, b.name AS brand FROM brand_aliases a JOIN brands b ON b.id = a.brand_id WHERE a.alias = %(alias)s;

-- name: put_alias
INSERT INTO brand_aliases (alias, spelling, brand_id, origin) VALUES (%(alias)s, %(spelling)s, %(brand_id)s, 'person')
    ON CONFLICT (alias) DO UPDATE SET brand_id = excluded.brand_id, origin = 'person', moved_from = NULL;

-- name: insert_brand
INSERT INTO brands (slug, name, named_by_person) VALUES (%(slug)s, %(name)s, true) ON CONFLICT (slug) DO NOTHING RETURNING id;

-- name: rename
UPDATE brands SET name = %(name)s, named_by_person = true WHERE id = %(id)s;
