-- Groups the signatures of blocks that wait. All of a batch is one transaction.

-- name: mark_dirty
-- A mark that is there is written again: it is locked until this transaction ends, so that the block is not grouped before.
INSERT INTO match_dirty_blocks (block, cause) SELECT DISTINCT b, %(cause)s FROM unnest(%(blocks)s::text[]) b ORDER BY 1
    ON CONFLICT (block) DO UPDATE SET cause = CASE WHEN excluded.cause = 'menu' THEN match_dirty_blocks.cause ELSE excluded.cause END;

-- name: leave_components
UPDATE match_signatures s SET component = NULL
 WHERE s.component IN (SELECT o.component FROM match_signatures o WHERE o.id = ANY (%(ids)s::bigint[]));

-- name: mark_joined
-- All of the blocks that people join by these signatures, which have gained or lost listings: they may have been grouped without each
-- other so far, or may be from now on.
INSERT INTO match_dirty_blocks (block, cause)
SELECT DISTINCT unnest(ARRAY[a.block, b.block]), 'correction'
  FROM match_signatures s JOIN match_corrections c ON s.key IN (c.a_key, c.b_key)
  JOIN match_signatures a ON a.key = c.a_key JOIN match_signatures b ON b.key = c.b_key
 WHERE s.id = ANY (%(ids)s::bigint[]) AND c.same AND c.withdrawn_at IS NULL AND a.block <> b.block
 ORDER BY 1
    ON CONFLICT (block) DO UPDATE SET cause = excluded.cause;

-- name: waiting
-- Blocks that wait, in the order of their lowest listing: new numbers are given in that order.
SELECT d.block, count(DISTINCT s.id) AS signatures, count(m.product_id) AS listings
  FROM match_dirty_blocks d LEFT JOIN match_signatures s ON s.block = d.block LEFT JOIN product_matches m ON m.signature_id = s.id
 WHERE d.block <> ALL (%(exclude)s::text[])
 GROUP BY 1 ORDER BY min(m.product_id) NULLS FIRST, 1;

-- name: joined_blocks
-- Pairs of blocks that people joined by saying that listings of them are the same.
SELECT DISTINCT a.block, b.block
  FROM match_corrections c JOIN match_signatures a ON a.key = c.a_key JOIN match_signatures b ON b.key = c.b_key
 WHERE c.same AND c.withdrawn_at IS NULL AND a.block <> b.block
   AND EXISTS (SELECT FROM product_matches m WHERE m.signature_id = a.id)
   AND EXISTS (SELECT FROM product_matches m WHERE m.signature_id = b.id);

-- name: take
DELETE FROM match_dirty_blocks WHERE block = ANY (%(blocks)s::text[]) RETURNING block, cause;

-- name: signatures
SELECT id, key, block, parsed::text, canonical_product_id, linked_to, confidence, reasons::text, component,
       EXISTS (SELECT FROM product_matches m WHERE m.signature_id = match_signatures.id) AS used
  FROM match_signatures WHERE block = ANY (%(blocks)s::text[]) ORDER BY key;

-- name: sharing_ids
-- Signatures of these blocks that have an id of these signatures. By single ids: a join of arrays compares each with each.
SELECT DISTINCT s.id
  FROM match_signatures s JOIN product_matches x ON x.signature_id = s.id CROSS JOIN unnest(x.platform_ids) i(id)
 WHERE s.block = ANY (%(blocks)s::text[])
   AND i.id IN (SELECT unnest(m.platform_ids) FROM product_matches m WHERE m.signature_id = ANY (%(signatures)s::bigint[]));

-- name: listings
SELECT m.product_id, m.dispensary_id, m.signature_id, coalesce(c.merged_into, c.id), m.platform_ids, m.sizes,
       extract(epoch FROM p.first_seen_at)::double precision, extract(epoch FROM p.last_seen_at)::double precision
  FROM product_matches m
  LEFT JOIN canonical_products c ON c.id = m.canonical_product_id
  LEFT JOIN catalog_products p ON p.id = m.product_id
 WHERE m.signature_id = ANY (%(signatures)s::bigint[]);

-- name: corrections
SELECT a_key, b_key, same FROM match_corrections
 WHERE withdrawn_at IS NULL AND (a_key = ANY (%(keys)s::uuid[]) OR b_key = ANY (%(keys)s::uuid[]));

-- name: products
SELECT id, brand_id, name, category, form, strain, anchor_product_id, listings, stores FROM canonical_products WHERE id = ANY (%(ids)s::bigint[]);

-- name: retired
SELECT id, merged_into, anchor_product_id FROM canonical_products WHERE merged_into = ANY (%(ids)s::bigint[]) AND anchor_product_id IS NOT NULL;

-- name: elsewhere
SELECT m.canonical_product_id, count(*), min(m.product_id), bool_and(d.block IS NULL)
  FROM product_matches m JOIN match_signatures s ON s.id = m.signature_id LEFT JOIN match_dirty_blocks d ON d.block = s.block
 WHERE m.canonical_product_id = ANY (%(ids)s::bigint[]) AND s.id <> ALL (%(signatures)s::bigint[])
 GROUP BY m.canonical_product_id, s.block;

-- name: brand_ids
SELECT a.alias, coalesce(b.merged_into, b.id) FROM brand_aliases a JOIN brands b ON b.id = a.brand_id WHERE a.alias = ANY (%(aliases)s::text[]);

-- name: new_numbers
SELECT nextval(pg_get_serial_sequence('canonical_products', 'id')) FROM generate_series(1, %(count)s);

-- name: put_products
INSERT INTO canonical_products (id, brand_id, name, category, form, strain, anchor_product_id, listings, stores) OVERRIDING SYSTEM VALUE
SELECT id, brand_id, name, category, form, strain, anchor_product_id, listings, stores
  FROM json_to_recordset(%(rows)s::json) n(id bigint, brand_id integer, name text, category text, form text, strain text,
       anchor_product_id bigint, listings integer, stores integer)
 ORDER BY id
    ON CONFLICT (id) DO UPDATE SET brand_id = excluded.brand_id, name = excluded.name, category = excluded.category, form = excluded.form,
       strain = excluded.strain, anchor_product_id = excluded.anchor_product_id, listings = excluded.listings, stores = excluded.stores,
       merged_into = NULL, changed_at = now();

-- name: merge_products
-- Redirects lead to where the product is, never to another redirect.
UPDATE canonical_products c SET merged_into = t.target, changed_at = now(), listings = 0, stores = 0
  FROM (SELECT n.id, n.target FROM unnest(%(ids)s::bigint[], %(targets)s::bigint[]) n(id, target)
         UNION ALL
        SELECT o.id, n.target FROM unnest(%(ids)s::bigint[], %(targets)s::bigint[]) n(id, target) JOIN canonical_products o ON o.merged_into = n.id) t
 WHERE c.id = t.id;

-- name: redirect_products
UPDATE canonical_products c SET merged_into = n.target, changed_at = now()
  FROM unnest(%(ids)s::bigint[], %(targets)s::bigint[]) n(id, target) WHERE c.id = n.id;

-- name: put_links
UPDATE product_matches m SET canonical_product_id = n.number, matched_at = now()
  FROM unnest(%(ids)s::bigint[], %(numbers)s::bigint[]) n(id, number) WHERE m.product_id = n.id;

-- name: put_signatures
UPDATE match_signatures s SET canonical_product_id = n.number, linked_to = n.linked_to, confidence = n.confidence, reasons = n.reasons,
       component = n.component
  FROM unnest(%(ids)s::bigint[], %(numbers)s::bigint[], %(linked)s::bigint[], %(confidences)s::double precision[], %(reasons)s::text[]::json[],
       %(components)s::bigint[]) n(id, number, linked_to, confidence, reasons, component)
 WHERE s.id = n.id;

-- name: delete_signatures
DELETE FROM match_signatures WHERE id = ANY (%(ids)s::bigint[]);

-- name: put_sizes
INSERT INTO canonical_sizes (canonical_product_id, size)
SELECT n.id, n.size FROM unnest(%(ids)s::bigint[], %(sizes)s::text[]) n(id, size)
 WHERE NOT EXISTS (SELECT FROM canonical_sizes s WHERE s.canonical_product_id = n.id AND s.size = n.size)
 ORDER BY 1, 2;

-- name: put_events
INSERT INTO match_events (kind, from_id, to_id, listings, cause)
SELECT * FROM unnest(%(kinds)s::text[], %(from_ids)s::bigint[], %(to_ids)s::bigint[], %(listings)s::integer[], %(causes)s::text[]);

-- name: move_skipped
-- What a person skipped stays skipped when signatures are made again.
UPDATE match_reviews r SET a = least(n.a, n.b), b = greatest(n.a, n.b)
  FROM (SELECT o.a AS old_a, o.b AS old_b, coalesce(x.new, o.a) AS a, coalesce(y.new, o.b) AS b
          FROM match_reviews o
          LEFT JOIN unnest(%(old)s::bigint[], %(new)s::bigint[]) x(old, new) ON x.old = o.a
          LEFT JOIN unnest(%(old)s::bigint[], %(new)s::bigint[]) y(old, new) ON y.old = o.b
         WHERE o.skipped_at IS NOT NULL AND (o.a = ANY (%(old)s::bigint[]) OR o.b = ANY (%(old)s::bigint[]))) n
 WHERE (r.a, r.b) = (n.old_a, n.old_b);

-- name: delete_reviews
-- Those that the blocks no longer give.
DELETE FROM match_reviews r
 WHERE (r.a = ANY (%(signatures)s::bigint[]) OR r.b = ANY (%(signatures)s::bigint[]))
   AND NOT EXISTS (SELECT FROM unnest(%(a)s::bigint[], %(b)s::bigint[]) n(a, b) WHERE (n.a, n.b) = (r.a, r.b));

-- name: put_reviews
INSERT INTO match_reviews (a, b, confidence, together, impact, reasons)
SELECT * FROM unnest(%(a)s::bigint[], %(b)s::bigint[], %(confidences)s::double precision[], %(together)s::boolean[], %(impacts)s::integer[],
       %(reasons)s::text[]::json[])
    ON CONFLICT (a, b) DO UPDATE SET confidence = excluded.confidence, together = excluded.together, impact = excluded.impact,
       reasons = excluded.reasons
 WHERE (match_reviews.confidence, match_reviews.together, match_reviews.impact, match_reviews.reasons::text)
       IS DISTINCT FROM (excluded.confidence, excluded.together, excluded.impact, excluded.reasons::text);
