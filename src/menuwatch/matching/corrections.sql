-- People's decisions about two listings.

-- name: take_lock
-- Two corrections that contradict each other must not be checked at the same time.
SELECT pg_advisory_xact_lock(hashtext('match corrections'));

-- piece: correction_columns
c.id, c.same, c.a, c.b, c.note, c.made_by, c.made_at, c.withdrawn_at, c.withdrawn_by,
CASE WHEN c.withdrawn_by IS NOT NULL THEN 'withdrawn'
     WHEN c.withdrawn_at IS NOT NULL THEN 'superseded'
     WHEN sa.id IS NULL OR sb.id IS NULL THEN 'unlisted'
     WHEN sa.canonical_product_id IS NULL OR sb.canonical_product_id IS NULL
          OR (sa.canonical_product_id = sb.canonical_product_id) <> c.same
          OR EXISTS (SELECT FROM match_dirty_blocks w WHERE w.block IN (sa.block, sb.block)) THEN 'waiting'
     ELSE 'applied' END AS state,
(SELECT min(m.product_id) FROM product_matches m WHERE m.signature_id = sa.id) AS a_product_id,
(SELECT min(m.product_id) FROM product_matches m WHERE m.signature_id = sb.id) AS b_product_id

-- piece: from_corrections
FROM match_corrections c
LEFT JOIN match_signatures sa ON sa.key = c.a_key
LEFT JOIN match_signatures sb ON sb.key = c.b_key

-- name: list_corrections
SELECT {correction_columns}
{from_corrections}
 WHERE (%(id)s::bigint IS NULL OR c.id = %(id)s)
   AND (%(after)s::bigint IS NULL OR c.id < %(after)s)
   AND (%(same)s::boolean IS NULL OR c.same = %(same)s)
   AND (%(active)s::boolean IS NULL OR (c.withdrawn_at IS NULL) = %(active)s)
   AND (%(made_by)s::text IS NULL OR lower(c.made_by) = lower(%(made_by)s))
   AND (%(products)s::bigint[] IS NULL
        OR EXISTS (SELECT FROM product_matches m WHERE m.signature_id IN (sa.id, sb.id) AND m.product_id = ANY (%(products)s)))
 ORDER BY c.id DESC LIMIT %(limit)s;

-- name: touching
-- Corrections in force that name one of these signatures.
SELECT id, same, a_key, b_key, a, b, made_by, made_at FROM match_corrections
 WHERE withdrawn_at IS NULL AND (a_key = ANY (%(keys)s::uuid[]) OR b_key = ANY (%(keys)s::uuid[])) ORDER BY id;

-- name: insert_correction
INSERT INTO match_corrections (same, a_key, b_key, a, b, note, made_by)
VALUES (%(same)s, %(a_key)s, %(b_key)s, %(a)s, %(b)s, %(note)s, %(made_by)s)
RETURNING id;

-- name: withdraw
UPDATE match_corrections SET withdrawn_at = now(), withdrawn_by = %(by)s WHERE id = %(id)s AND withdrawn_at IS NULL
RETURNING a_key, b_key;

-- name: blocks_of
SELECT block FROM match_signatures WHERE key = ANY (%(keys)s::uuid[]);
