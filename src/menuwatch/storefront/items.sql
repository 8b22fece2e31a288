-- Items of the storefront: canonical products with the words they are found by.

-- name: missing
SELECT n.id FROM unnest(%(ids)s::bigint[]) n(id) WHERE NOT EXISTS (SELECT FROM storefront_items i WHERE i.id = n.id);

-- name: describe
-- Products with what some of their listings write. A listing has its own words for the product; a hundred of them say enough.
SELECT c.id, c.name, b.id AS brand_id, b.name AS brand, c.category AS kind, c.strain, c.form, l.subcategory, l.categories,
       coalesce(l.first_seen, extract(epoch FROM c.created_at)::integer) AS first_seen, l.names, l.brands, l.kinds,
       (SELECT array_agg(a.spelling) FROM (SELECT spelling FROM brand_aliases WHERE brand_id = b.id ORDER BY alias LIMIT 20) a) AS aliases
  FROM unnest(%(ids)s::bigint[]) n(id)
  JOIN canonical_products c ON c.id = n.id
  LEFT JOIN brands o ON o.id = c.brand_id
  LEFT JOIN brands b ON b.id = CASE WHEN o.merged_into IS NULL THEN o.id ELSE live_brand(o.id) END
  LEFT JOIN LATERAL (
    SELECT mode() WITHIN GROUP (ORDER BY p.subcategory_canon) AS subcategory, min(extract(epoch FROM p.first_seen_at))::integer AS first_seen,
           array_agg(p.category_canon) AS categories, array_agg(DISTINCT p.name) AS names, array_agg(DISTINCT p.brand_name) AS brands,
           array_agg(DISTINCT concat_ws(' ', p.category, p.subcategory, p.strain_type)) AS kinds
      FROM (SELECT product_id FROM product_matches WHERE canonical_product_id = c.id LIMIT 100) m
      JOIN catalog_products p ON p.id = m.product_id) l ON true;

-- name: put_items
WITH n AS MATERIALIZED (
  SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) n(id bigint, name text, brand_id integer, category text, subcategory text, strain text,
         a text, b text, c text, d text, first_seen integer)
), i AS (
  INSERT INTO storefront_items (id, name, brand_id, category, subcategory, strain, first_seen)
  SELECT id, name, brand_id, category, subcategory, strain, first_seen FROM n
      ON CONFLICT (id) DO UPDATE SET name = excluded.name, brand_id = excluded.brand_id, category = excluded.category,
         subcategory = excluded.subcategory, strain = coalesce(excluded.strain, storefront_items.strain), changed_at = now())
INSERT INTO storefront_item_words (item_id, words)
SELECT n.id, setweight(to_tsvector('simple', n.a), 'A') || setweight(to_tsvector('simple', n.b), 'B')
             || setweight(to_tsvector('simple', n.c), 'C') || setweight(to_tsvector('simple', n.d), 'D') FROM n
    ON CONFLICT (item_id) DO UPDATE SET words = excluded.words;

-- name: add_words
-- Adds words to items that are not found by them yet, and returns those added.
UPDATE storefront_item_words w
   SET words = w.words || setweight(to_tsvector('simple', array_to_string(x.added, ' ')), 'D')
  FROM (SELECT n.item_id, array(SELECT word FROM unnest(tsvector_to_array(to_tsvector('simple', n.text))) l(word)
                                 WHERE word <> ALL (tsvector_to_array(o.words))) AS added
          FROM unnest(%(ids)s::bigint[], %(texts)s::text[]) n(item_id, text)
          JOIN storefront_item_words o ON o.item_id = n.item_id
         WHERE length(o.words) < %(most)s) x
 WHERE w.item_id = x.item_id AND cardinality(x.added) > 0
RETURNING x.added;

-- name: put_words
WITH new AS (
  INSERT INTO storefront_words (word) SELECT DISTINCT word FROM unnest(%(words)s::text[], %(spellings)s::text[]) n(word, spelling)
      ON CONFLICT (word) DO NOTHING RETURNING word)
INSERT INTO storefront_spellings (spelling, word)
SELECT n.spelling, n.word FROM unnest(%(words)s::text[], %(spellings)s::text[]) n(word, spelling) JOIN new USING (word)
    ON CONFLICT DO NOTHING;

-- name: take_changed
-- A batch of canonical products that changed, as far as they are items, each with what it is now.
WITH taken AS (
  DELETE FROM storefront_dirty_products
   WHERE canonical_product_id IN (SELECT canonical_product_id FROM storefront_dirty_products LIMIT %(limit)s)
  RETURNING canonical_product_id AS id)
SELECT count(*) AS taken, array_agg(DISTINCT t.id) FILTER (WHERE i.id IS NOT NULL) AS ids FROM taken t LEFT JOIN storefront_items i ON i.id = t.id;

-- name: merged
-- Locked, so that no watch is set on one of them meanwhile.
SELECT c.id AS old, live_canonical_product(c.id) AS new FROM canonical_products c JOIN storefront_items i ON i.id = c.id
 WHERE c.id = ANY (%(ids)s::bigint[]) AND c.merged_into IS NOT NULL FOR UPDATE OF i;

-- name: update_offers
UPDATE storefront_offers o SET brand_id = i.brand_id, category = i.category, strain = coalesce(i.strain, o.strain)
  FROM storefront_items i
 WHERE i.id = ANY (%(ids)s::bigint[]) AND o.item_id = i.id
   AND (o.brand_id, o.category, o.strain) IS DISTINCT FROM (i.brand_id, i.category, coalesce(i.strain, o.strain));

-- name: move_offers
-- All offers at once, so that watches never see some of them. Their stores are indexed again, which evaluates the watches.
WITH moved AS (
  UPDATE storefront_offers o SET item_id = i.id, source_version = 0, brand_id = i.brand_id, category = i.category, strain = coalesce(i.strain, o.strain)
    FROM unnest(%(old)s::bigint[], %(new)s::bigint[]) n(old, new) JOIN storefront_items i ON i.id = n.new
   WHERE o.item_id = n.old
  RETURNING o.store_id)
INSERT INTO storefront_dirty_stores SELECT DISTINCT store_id FROM moved;

-- name: move_watches
UPDATE price_watches w SET item_id = n.new FROM unnest(%(old)s::bigint[], %(new)s::bigint[]) n(old, new) WHERE w.item_id = n.old;

-- name: delete_merged
-- Its address leads to the product that it was merged into.
DELETE FROM storefront_items i WHERE i.id = ANY (%(ids)s::bigint[]);
