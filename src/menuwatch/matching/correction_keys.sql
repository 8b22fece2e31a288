-- Keeps the keys of corrections in step with the parser and the aliases of brands.

-- name: state
-- What the keys depend on, besides the parser.
SELECT concat_ws(',', (SELECT count(*) FROM match_corrections), (SELECT max(id) FROM match_corrections),
                 (SELECT sum(hashtextextended(a.alias || ' ' || a.brand_id, 0)) FROM brand_aliases a WHERE a.origin <> 'spelling'),
                 (SELECT sum(hashtextextended(b.id || ' ' || b.merged_into, 0)) FROM brands b WHERE b.merged_into IS NOT NULL)) AS state;

-- name: valid
SELECT id, a_key, b_key, a::text, b::text FROM match_corrections WHERE withdrawn_at IS NULL ORDER BY id;

-- name: withdraw
-- Two that are of one pair now: the newer one holds.
UPDATE match_corrections SET withdrawn_at = now() WHERE id = ANY (%(ids)s::bigint[]);

-- name: set_keys
UPDATE match_corrections SET a_key = n.a, b_key = n.b FROM unnest(%(ids)s::bigint[], %(a)s::uuid[], %(b)s::uuid[]) n(id, a, b)
 WHERE match_corrections.id = n.id;
