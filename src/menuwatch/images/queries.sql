-- Pictures: uses (who wants one), sources (addresses), images (files).

-- name: queue_products
-- Products of a store that have no picture of their own yet. One that failed is asked for again only where its address is another.
INSERT INTO image_uses (product_id, url)
SELECT p.id, p.image_url FROM catalog_products p
 WHERE p.dispensary_id = %(dispensary_id)s AND p.local_image_path IS NULL AND p.image_url <> ''
   AND NOT EXISTS (SELECT FROM image_uses u WHERE u.product_id = p.id AND (u.status = 'stored' OR u.url = p.image_url))
 ORDER BY p.id
ON CONFLICT (product_id) DO UPDATE SET url = EXCLUDED.url, status = 'queued', source_id = NULL, error = NULL, queued_at = now(), settled_at = NULL
 WHERE image_uses.status <> 'stored' AND image_uses.url <> EXCLUDED.url;

-- name: queue_brands
INSERT INTO image_uses (brand, url)
SELECT DISTINCT ON (b.brand) b.brand, b.url FROM unnest(%(brands)s::text[], %(urls)s::text[]) b(brand, url)
 WHERE NOT EXISTS (SELECT FROM image_uses u WHERE u.brand = b.brand)
 ORDER BY b.brand, b.url
ON CONFLICT (brand) DO NOTHING;

-- name: stores_without
-- Stores that have products whose picture nobody asked for yet.
SELECT DISTINCT p.dispensary_id FROM catalog_products p
 WHERE (%(dispensary_id)s::integer IS NULL OR p.dispensary_id = %(dispensary_id)s)
   AND p.local_image_path IS NULL AND p.image_url <> ''
   AND NOT EXISTS (SELECT FROM image_uses u WHERE u.product_id = p.id)
 ORDER BY 1;

-- name: take_queued
SELECT id, url FROM image_uses WHERE status = 'queued' ORDER BY id LIMIT %(limit)s FOR UPDATE SKIP LOCKED;

-- name: enter_sources
-- In the order of their addresses, so that two who do this never wait for each other in a ring.
INSERT INTO image_sources AS s (url, host)
SELECT u.url, u.host FROM unnest(%(urls)s::text[], %(hosts)s::text[]) u(url, host) ORDER BY u.url
ON CONFLICT (url) DO UPDATE SET due_at = CASE WHEN s.status <> 'failed' THEN coalesce(s.due_at, now()) END
RETURNING s.id, s.url, s.status, s.error;

-- name: sort_uses
UPDATE image_uses u SET status = 'waiting', source_id = s.source_id
  FROM unnest(%(ids)s::bigint[], %(sources)s::bigint[]) s(id, source_id) WHERE u.id = s.id;

-- name: refuse_uses
UPDATE image_uses u SET status = 'failed', error = s.error, settled_at = now()
  FROM unnest(%(ids)s::bigint[], %(errors)s::text[]) s(id, error) WHERE u.id = s.id;

-- name: claim_sources
UPDATE image_sources SET due_at = now() + make_interval(secs => %(hold)s), tried_at = now()
 WHERE id IN (SELECT id FROM image_sources WHERE due_at <= now() ORDER BY due_at, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
RETURNING id, url, host, status, attempts, sha256;

-- name: is_wanted
-- No row where nobody wants it now: all who do are of stores that may not be contacted.
SELECT 1 FROM image_uses u LEFT JOIN catalog_products p ON p.id = u.product_id LEFT JOIN dispensaries d ON d.id = p.dispensary_id
 WHERE u.source_id = %(id)s AND u.status = 'waiting' AND (u.brand IS NOT NULL OR d.crawl_enabled) LIMIT 1;

-- name: rest_source
UPDATE image_sources SET error = %(error)s, due_at = CASE WHEN EXISTS (SELECT FROM image_uses u WHERE u.source_id = %(id)s AND u.status = 'waiting')
                                                          THEN now() + make_interval(secs => %(wait)s) END
 WHERE id = %(id)s;

-- name: next_due
SELECT least(
         (SELECT extract(epoch FROM min(due_at) - now())::float8 FROM image_sources WHERE due_at IS NOT NULL),
         (SELECT 0.0::float8 FROM image_uses WHERE status = 'queued' LIMIT 1));

-- name: put_off
UPDATE image_sources SET due_at = now() + make_interval(secs => %(wait)s), error = coalesce(%(error)s, error) WHERE id = ANY (%(ids)s::bigint[]);

-- name: attempt_failed
UPDATE image_sources SET attempts = attempts + 1, error = %(error)s, due_at = now() + make_interval(secs => %(wait)s) WHERE id = %(id)s;

-- name: give_up_source
UPDATE image_sources SET attempts = attempts + 1, error = %(error)s, due_at = NULL, status = 'failed', sha256 = NULL WHERE id = %(id)s;

-- name: give_up_uses
UPDATE image_uses SET status = 'failed', error = %(error)s, settled_at = now() WHERE source_id = %(id)s AND status = 'waiting';

-- name: get_image
SELECT * FROM images WHERE sha256 = %(sha256)s;

-- name: add_image
INSERT INTO images AS i (sha256, path, width, height, bytes, source_format, source_bytes, colour)
VALUES (%(sha256)s, %(path)s, %(width)s, %(height)s, %(bytes)s, %(source_format)s, %(source_bytes)s, %(colour)s)
-- Of two who store one picture at the same time the first has its way, unless that file is known to be gone.
ON CONFLICT (sha256) DO UPDATE SET path = CASE WHEN i.path = %(gone)s THEN EXCLUDED.path ELSE i.path END
RETURNING i.path;

-- name: source_stored
UPDATE image_sources SET status = 'stored', sha256 = %(sha256)s, attempts = 0, error = NULL WHERE id = %(id)s;

-- name: source_lost
-- Its file is gone: it is downloaded anew.
UPDATE image_sources SET status = 'waiting', sha256 = NULL, due_at = now(), error = %(error)s WHERE id = %(id)s;

-- name: waiting_uses
-- Who waits for an address, with what the file's path is made of.
SELECT u.id, u.product_id, u.brand, d.state, d.slug AS store, p.brand_name, p.id IS NULL AND u.brand IS NULL AS gone
  FROM image_uses u LEFT JOIN catalog_products p ON p.id = u.product_id LEFT JOIN dispensaries d ON d.id = p.dispensary_id
 WHERE u.source_id = %(source_id)s AND u.status = 'waiting'
 ORDER BY u.id LIMIT %(limit)s;

-- name: uses_stored
UPDATE image_uses u SET status = 'stored', path = s.path, error = NULL, settled_at = now()
  FROM unnest(%(ids)s::bigint[], %(paths)s::text[]) s(id, path) WHERE u.id = s.id AND u.status = 'waiting';

-- name: drop_uses
DELETE FROM image_uses WHERE id = ANY (%(ids)s::bigint[]);

-- name: lock_source
SELECT status FROM image_sources WHERE id = %(id)s FOR NO KEY UPDATE;

-- name: close_source
-- There is nothing more to do for it; or there is, for those that came or could not be written meanwhile.
UPDATE image_sources SET due_at = CASE WHEN EXISTS (SELECT FROM image_uses u WHERE u.source_id = %(id)s AND u.status = 'waiting')
                                       THEN now() + interval '1 second' END
 WHERE id = %(id)s;

-- name: try_failed_sources
UPDATE image_sources s SET status = 'waiting', attempts = 0, due_at = now()
 WHERE s.status = 'failed'
   AND EXISTS (SELECT FROM image_uses u LEFT JOIN catalog_products p ON p.id = u.product_id
                WHERE u.source_id = s.id AND u.status = 'failed'
                  AND (%(dispensary_id)s::integer IS NULL OR p.dispensary_id = %(dispensary_id)s));

-- name: try_failed_uses
-- Those whose address was refused outright are sorted again: what is allowed may be different now.
UPDATE image_uses u SET status = CASE WHEN u.source_id IS NULL THEN 'queued' ELSE 'waiting' END, error = NULL, settled_at = NULL
 WHERE u.status = 'failed'
   AND (u.source_id IS NULL OR EXISTS (SELECT FROM image_sources s WHERE s.id = u.source_id AND s.status <> 'failed'))
   AND (%(dispensary_id)s::integer IS NULL
        OR EXISTS (SELECT FROM catalog_products p WHERE p.id = u.product_id AND p.dispensary_id = %(dispensary_id)s));

-- name: counts
SELECT (SELECT count(*) FROM image_uses WHERE status = 'queued') AS queued,
       (SELECT count(*) FROM image_uses WHERE status = 'waiting') AS waiting,
       (SELECT count(*) FROM image_uses WHERE status = 'stored') AS stored,
       (SELECT count(*) FROM image_uses WHERE status = 'failed') AS failed,
       (SELECT count(*) FROM images) AS images,
       (SELECT coalesce(sum(bytes), 0)::bigint FROM images) AS bytes;

-- name: list_uses
SELECT u.id, u.product_id, u.brand, p.dispensary_id, p.name, u.status, u.url, u.path, coalesce(u.error, s.error) AS error, s.attempts,
       CASE WHEN u.status = 'waiting' THEN s.due_at END AS due_at, i.width, i.height, i.bytes, i.source_format, i.colour, u.settled_at
  FROM image_uses u
  LEFT JOIN image_sources s ON s.id = u.source_id LEFT JOIN images i ON i.sha256 = s.sha256
  LEFT JOIN catalog_products p ON p.id = u.product_id
 WHERE (%(status)s::text IS NULL OR u.status = %(status)s)
   AND (%(dispensary_id)s::integer IS NULL OR p.dispensary_id = %(dispensary_id)s)
 ORDER BY u.id DESC LIMIT %(limit)s;

-- name: stored_uses
-- Every file that somebody counts on, a page at a time.
SELECT u.id, u.product_id, u.path, u.source_id, p.local_image_path
  FROM image_uses u LEFT JOIN catalog_products p ON p.id = u.product_id
 WHERE u.status = 'stored' AND u.id > %(after)s ORDER BY u.id LIMIT %(limit)s;

-- name: known_paths
SELECT path FROM image_uses WHERE path = ANY (%(paths)s::text[])
UNION SELECT path FROM images WHERE path = ANY (%(paths)s::text[]);

-- name: uses_lost
-- Their files are gone or damaged: they are asked for again.
UPDATE image_uses SET status = 'queued', path = NULL, source_id = NULL, error = NULL, settled_at = NULL, queued_at = now()
 WHERE id = ANY (%(ids)s::bigint[]) AND status = 'stored' RETURNING product_id;
