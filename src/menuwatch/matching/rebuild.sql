-- Drops the index of matches and has it made again. Numbers stay with their listings.

-- name: note_numbers
CREATE TEMPORARY TABLE numbers_before ON COMMIT PRESERVE ROWS AS
SELECT m.product_id, coalesce(c.merged_into, c.id) AS number
  FROM product_matches m JOIN canonical_products c ON c.id = m.canonical_product_id;

-- name: drop_numbers
DROP TABLE IF EXISTS numbers_before;

-- name: compare
-- A listing that had no number before, or is gone since, changed none.
SELECT count(*) AS listings, count(*) FILTER (WHERE b.number <> m.canonical_product_id) AS changed
  FROM product_matches m LEFT JOIN numbers_before b USING (product_id);

-- name: mark_blocks
INSERT INTO match_dirty_blocks (block, cause) SELECT DISTINCT block, 'rules' FROM match_signatures ORDER BY 1
    ON CONFLICT (block) DO UPDATE SET block = excluded.block;

-- name: drop_signatures
-- Nothing finds them by such a key: all are made again, and these are deleted with the grouping of their blocks.
UPDATE match_signatures SET key = gen_random_uuid(), canonical_product_id = NULL, linked_to = NULL, confidence = NULL, reasons = NULL, component = NULL;

-- name: drop_links
UPDATE product_matches SET source_version = source_version + 1;

-- name: drop_stores
UPDATE match_stores SET rules_version = %(mark)s;
