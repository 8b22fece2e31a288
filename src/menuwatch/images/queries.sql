-- Pictures: uses (who wants one), sources (addresses), images (files).

-- name: queue_products
-- Products of a store that have no image of their own yet. A failed one is requested again only if its URL changed.
INSERT INTO image_references (product_id, url)
SELECT p.id, p.image_url FROM catalog_products p
 WHERE p.dispensary_id = %(dispensary_id)s AND (%(changed_at)s::timestamptz IS NULL OR p.changed_at = %(changed_at)s)
   AND p.local_image_path IS NULL AND p.image_url <> ''
   AND NOT EXISTS (SELECT FROM image_references u WHERE u.product_id = p.id AND (u.status = 'stored' OR u.url = p.image_url))
 ORDER BY p.id
ON CONFLICT (product_id) DO UPDATE SET url = EXCLUDED.url, status = 'queued', url_id = NULL, error = NULL, queued_at = now(), settled_at = NULL
 WHERE image_references.status <> 'stored' AND image_references.url <> EXCLUDED.url;

-- name: queue_brands
INSERT INTO image_references (brand, url)
SELECT DISTINCT ON (b.brand) b.brand, b.url FROM unnest(%(brands)s::text[], %(urls)s::text[]) b(brand, url)
 WHERE NOT EXISTS (SELECT FROM image_references u WHERE u.brand = b.brand)
 ORDER BY b.brand, b.url
ON CONFLICT (brand) DO NOTHING;

-- name: stores_without
-- Stores with products whose image has not been requested yet.
SELECT DISTINCT p.dispensary_id FROM catalog_products p
 WHERE (%(dispensary_id)s::integer IS NULL OR p.dispensary_id = %(dispensary_id)s)
   AND p.local_image_path IS NULL AND p.image_url <> ''
   AND NOT EXISTS (SELECT FROM image_references u WHERE u.product_id = p.id)
 ORDER BY 1;

-- name: take_queued
SELECT id, url FROM image_references WHERE status = 'queued' ORDER BY id LIMIT %(limit)s FOR UPDATE SKIP LOCKED;

-- name: enter_sources
-- In the order of their addresses, so that two who do this never wait for each other in a ring.
INSERT INTO image_urls AS s (url, host)
SELECT u.url, u.host FROM unnest(%(urls)s::text[], %(hosts)s::text[]) u(url, host) ORDER BY u.url
ON CONFLICT (url) DO UPDATE SET due_at = CASE WHEN s.status <> 'failed' THEN coalesce(s.due_at, now()) END
RETURNING s.id, s.url, s.status, s.error;

-- name: sort_uses
UPDATE image_references u SET status = 'waiting', url_id = s.url_id
  FROM unnest(%(ids)s::bigint[], %(sources)s::bigint[]) s(id, url_id) WHERE u.id = s.id;

-- name: refuse_uses
UPDATE image_references u SET status = 'failed', error = s.error, settled_at = now()
  FROM unnest(%(ids)s::bigint[], %(errors)s::text[]) s(id, error) WHERE u.id = s.id;

-- name: claim_sources
UPDATE image_urls SET due_at = now() + make_interval(secs => %(lease_seconds)s), tried_at = now()
 WHERE id IN (SELECT id FROM image_urls WHERE due_at <= now() ORDER BY due_at, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
RETURNING id, url, host, status, attempts, sha256;

-- name: is_wanted
-- No row if only stores that may not be contacted reference it.
SELECT 1 FROM image_references u LEFT JOIN catalog_products p ON p.id = u.product_id LEFT JOIN dispensaries d ON d.id = p.dispensary_id
 WHERE u.url_id = %(id)s AND u.status = 'waiting' AND (u.brand IS NOT NULL OR d.crawl_enabled) LIMIT 1;

-- name: postpone_unwanted
UPDATE image_urls SET error = %(error)s, due_at = CASE WHEN EXISTS (SELECT FROM image_references u WHERE u.url_id = %(id)s AND u.status = 'waiting')
                                                          THEN now() + make_interval(secs => %(wait)s) END
 WHERE id = %(id)s;

-- name: next_due
SELECT least(
         (SELECT extract(epoch FROM min(due_at) - now())::float8 FROM image_urls WHERE due_at IS NOT NULL),
         (SELECT 0.0::float8 FROM image_references WHERE status = 'queued' LIMIT 1));

-- name: postpone
UPDATE image_urls SET due_at = now() + make_interval(secs => %(wait)s), error = coalesce(%(error)s, error) WHERE id = ANY (%(ids)s::bigint[]);

-- name: attempt_failed
UPDATE image_urls SET attempts = attempts + 1, error = %(error)s, due_at = now() + make_interval(secs => %(wait)s) WHERE id = %(id)s;

-- name: give_up_source
UPDATE image_urls SET attempts = attempts + 1, error = %(error)s, due_at = NULL, status = 'failed', sha256 = NULL WHERE id = %(id)s;

-- name: give_up_uses
UPDATE image_references SET status = 'failed', error = %(error)s, settled_at = now() WHERE url_id = %(id)s AND status = 'waiting';

-- name: get_image
SELECT sha256, path, width, height, bytes, source_format, source_bytes, colour FROM images WHERE sha256 = %(sha256)s;

-- name: add_image
INSERT INTO images AS i (sha256, path, width, height, bytes, source_format, source_bytes, colour)
VALUES (%(sha256)s, %(path)s, %(width)s, %(height)s, %(bytes)s, %(source_format)s, %(source_bytes)s, %(colour)s)
-- Of two who store one picture at the same time the first has its way, unless that file is known to be gone.
ON CONFLICT (sha256) DO UPDATE SET path = CASE WHEN i.path = %(gone)s THEN EXCLUDED.path ELSE i.path END
RETURNING i.path;

-- name: source_stored
UPDATE image_urls SET status = 'stored', sha256 = %(sha256)s, attempts = 0, error = NULL WHERE id = %(id)s;

-- name: source_lost
-- Its file is missing: it is downloaded again.
UPDATE image_urls SET status = 'waiting', sha256 = NULL, due_at = now(), error = %(error)s WHERE id = %(id)s;

-- name: waiting_uses
-- Who waits for an address, with what the file's path is made of.
SELECT u.id, u.product_id, u.brand, d.state, d.slug AS store, p.brand_name, p.id IS NULL AND u.brand IS NULL AS gone
  FROM image_references u LEFT JOIN catalog_products p ON p.id = u.product_id LEFT JOIN dispensaries d ON d.id = p.dispensary_id
 WHERE u.url_id = %(url_id)s AND u.status = 'waiting'
 ORDER BY u.id LIMIT %(limit)s;

-- name: uses_stored
UPDATE image_references u SET status = 'stored', path = s.path, error = NULL, settled_at = now()
  FROM unnest(%(ids)s::bigint[], %(paths)s::text[]) s(id, path) WHERE u.id = s.id AND u.status = 'waiting';

-- name: drop_uses
DELETE FROM image_references WHERE id = ANY (%(ids)s::bigint[]);

-- name: lock_source
SELECT status FROM image_urls WHERE id = %(id)s FOR NO KEY UPDATE;

-- name: close_source
-- There is nothing more to do for it; or there is, for those that came or could not be written meanwhile.
UPDATE image_urls SET due_at = CASE WHEN EXISTS (SELECT FROM image_references u WHERE u.url_id = %(id)s AND u.status = 'waiting')
                                       THEN now() + interval '1 second' END
 WHERE id = %(id)s;

-- name: retry_failed_sources
UPDATE image_urls s SET status = 'waiting', attempts = 0, due_at = now()
 WHERE s.status = 'failed'
   AND EXISTS (SELECT FROM image_references u LEFT JOIN catalog_products p ON p.id = u.product_id
                WHERE u.url_id = s.id AND u.status = 'failed'
                  AND (%(dispensary_id)s::integer IS NULL OR p.dispensary_id = %(dispensary_id)s));

-- name: retry_failed_uses
-- Those whose address was refused outright are sorted again: what is allowed may be different now.
UPDATE image_references u SET status = CASE WHEN u.url_id IS NULL THEN 'queued' ELSE 'waiting' END, error = NULL, settled_at = NULL
 WHERE u.status = 'failed'
   AND (u.url_id IS NULL OR EXISTS (SELECT FROM image_urls s WHERE s.id = u.url_id AND s.status <> 'failed'))
   AND (%(dispensary_id)s::integer IS NULL
        OR EXISTS (SELECT FROM catalog_products p WHERE p.id = u.product_id AND p.dispensary_id = %(dispensary_id)s));

-- name: counts
SELECT (SELECT count(*) FROM image_references WHERE status = 'queued') AS queued,
       (SELECT count(*) FROM image_references WHERE status = 'waiting') AS waiting,
       (SELECT count(*) FROM image_references WHERE status = 'stored') AS stored,
       (SELECT count(*) FROM image_references WHERE status = 'failed') AS failed,
       (SELECT count(*) FROM images) AS images,
       (SELECT coalesce(sum(bytes), 0)::bigint FROM images) AS bytes;

-- name: list_uses
SELECT u.id, u.product_id, u.brand, p.dispensary_id, p.name, u.status, u.url, u.path, coalesce(u.error, s.error) AS error, s.attempts,
       CASE WHEN u.status = 'waiting' THEN s.due_at END AS due_at, i.width, i.height, i.bytes, i.source_format, i.colour, u.settled_at
  FROM image_references u
  LEFT JOIN image_urls s ON s.id = u.url_id LEFT JOIN images i ON i.sha256 = s.sha256
  LEFT JOIN catalog_products p ON p.id = u.product_id
 WHERE (%(status)s::text IS NULL OR u.status = %(status)s)
   AND (%(dispensary_id)s::integer IS NULL OR p.dispensary_id = %(dispensary_id)s)
 ORDER BY u.id DESC LIMIT %(limit)s;

-- name: stored_uses
-- Every referenced file, a page at a time.
SELECT u.id, u.product_id, u.path, u.url_id, p.local_image_path
  FROM image_references u LEFT JOIN catalog_products p ON p.id = u.product_id
 WHERE u.status = 'stored' AND u.id > %(after)s ORDER BY u.id LIMIT %(limit)s;

-- name: known_paths
SELECT path FROM image_references WHERE path = ANY (%(paths)s::text[])
UNION SELECT path FROM images WHERE path = ANY (%(paths)s::text[]);

-- name: uses_lost
-- Their files are gone or damaged: they are asked for again.
UPDATE image_references SET status = 'queued', path = NULL, url_id = NULL, error = NULL, settled_at = NULL, queued_at = now()
 WHERE id = ANY (%(ids)s::bigint[]) AND status = 'stored' RETURNING product_id;
