-- What one menu would change, read before it is taken back.

-- name: patience
-- Other transactions wait for the store's row no longer than this either.
SELECT set_config('statement_timeout', %(patience)s::text, true), set_config('lock_timeout', '3s', true);

-- name: first_seen
SELECT id, name, brand_name, 0 FROM catalog_products WHERE dispensary_id = %(id)s AND first_seen_at = %(at)s ORDER BY name, id LIMIT %(limit)s;

-- name: missed
-- Those of the menu before that this one lacks, how often in a row they were missing now.
SELECT p.id, p.name, p.brand_name, p.consecutive_misses FROM catalog_products p
 WHERE p.dispensary_id = %(id)s AND p.last_seen_at IS NOT NULL AND (p.consecutive_misses BETWEEN 1 AND 2 OR p.consecutive_misses = 3 AND p.state_from = %(at)s)
 ORDER BY p.consecutive_misses, p.name, p.id LIMIT %(limit)s;
