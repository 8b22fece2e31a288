-- What platforms say about brands (brand_descriptions.py).

-- name: missing
SELECT h.hash::text FROM unnest(%(hashes)s::uuid[]) h(hash) WHERE NOT EXISTS (SELECT FROM brand_descriptions b WHERE b.hash = h.hash);

-- name: add
INSERT INTO brand_descriptions SELECT * FROM unnest(%(hashes)s::uuid[], %(descriptions)s::text[]);
