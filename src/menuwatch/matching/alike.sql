-- Listings that are written as another one.

-- name: take_numbers
-- A listing has the number of its signature at once if grouping the block again would find all groups as they are: nothing else of the
-- signature's component is in its store, no other signature has one of its ids, and no other listing of the signature lacks a catalog
-- that it has an id of. Its block must not wait, and its number so far must not be another one.
WITH listed AS MATERIALIZED (
  SELECT m.product_id, m.dispensary_id, m.signature_id, s.component, s.canonical_product_id AS number, n.ids, n.catalogs
    FROM json_to_recordset(%(rows)s::json) n(product_id bigint, ids text[], catalogs text[])
    JOIN product_matches m ON m.product_id = n.product_id
    JOIN match_signatures s ON s.id = m.signature_id AND s.component IS NOT NULL
    JOIN canonical_products c ON c.id = s.canonical_product_id AND c.merged_into IS NULL
   WHERE coalesce(m.canonical_product_id, s.canonical_product_id) = s.canonical_product_id
     AND NOT EXISTS (SELECT FROM match_dirty_blocks d WHERE d.block = s.block)),
alike AS (
  SELECT product_id, number
    FROM listed n
   WHERE NOT EXISTS (SELECT FROM match_signatures o JOIN product_matches x ON x.signature_id = o.id
                      WHERE o.component = n.component AND o.id <> n.signature_id AND x.dispensary_id = n.dispensary_id)
     AND NOT EXISTS (SELECT FROM product_matches x WHERE x.platform_ids && n.ids AND x.signature_id <> n.signature_id)
     AND NOT EXISTS (SELECT FROM unnest(n.catalogs) k
                      WHERE NOT EXISTS (SELECT FROM product_matches x CROSS JOIN unnest(x.platform_ids) i
                                         WHERE x.signature_id = n.signature_id AND starts_with(i, k || ':')
                                           AND x.product_id <> ALL (%(products)s::bigint[]))))
UPDATE product_matches m SET canonical_product_id = a.number, matched_at = now() FROM alike a WHERE m.product_id = a.product_id
RETURNING m.product_id, m.canonical_product_id;

-- name: signatures
SELECT m.canonical_product_id, s.parsed::text, count(*)
  FROM product_matches m JOIN match_signatures s ON s.id = m.signature_id
 WHERE m.canonical_product_id = ANY (%(ids)s::bigint[])
 GROUP BY 1, s.id ORDER BY 1, s.key;

-- name: counts
SELECT m.canonical_product_id, count(*), count(DISTINCT m.dispensary_id)
  FROM product_matches m WHERE m.canonical_product_id = ANY (%(ids)s::bigint[]) GROUP BY 1;

-- name: count_impacts
-- Listings that decisions of the pairs of these products move.
WITH of_products AS MATERIALIZED (SELECT id FROM match_signatures WHERE canonical_product_id = ANY (%(ids)s::bigint[])),
pairs AS (SELECT a, b FROM match_reviews WHERE a IN (SELECT id FROM of_products)
           UNION
          SELECT a, b FROM match_reviews WHERE b IN (SELECT id FROM of_products)),
counted AS (
  SELECT r.a, r.b, least(CASE WHEN r.together THEN na.listings ELSE ca.listings END, CASE WHEN r.together THEN nb.listings ELSE cb.listings END) AS impact
    FROM pairs JOIN match_reviews r USING (a, b)
    JOIN match_signatures sa ON sa.id = a JOIN canonical_products ca ON ca.id = sa.canonical_product_id
    JOIN match_signatures sb ON sb.id = b JOIN canonical_products cb ON cb.id = sb.canonical_product_id
   CROSS JOIN LATERAL (SELECT count(*) AS listings FROM product_matches WHERE signature_id = a) na
   CROSS JOIN LATERAL (SELECT count(*) AS listings FROM product_matches WHERE signature_id = b) nb)
UPDATE match_reviews r SET impact = n.impact FROM counted n WHERE (r.a, r.b) = (n.a, n.b) AND r.impact <> n.impact;
