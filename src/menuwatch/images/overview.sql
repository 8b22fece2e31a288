-- Counts and lists of images for the dashboard.

-- name: overview
SELECT (SELECT count(*) FROM (SELECT FROM image_references WHERE status = 'queued' LIMIT %(most)s) few) AS queued,
       (SELECT count(*) FROM (SELECT FROM image_references WHERE status = 'waiting' LIMIT %(most)s) few) AS waiting,
       (SELECT count(*) FROM (SELECT FROM image_references WHERE status = 'failed' LIMIT %(most)s) few) AS failed,
       (SELECT count(*) FROM (SELECT FROM image_references WHERE status = 'stored' LIMIT %(exact)s) few) AS stored_looked,
       (SELECT greatest(c.reltuples, 0)::bigint FROM pg_class c WHERE c.oid = 'image_references'::regclass) AS uses_about,
       (SELECT greatest(c.reltuples, 0)::bigint FROM pg_class c WHERE c.oid = 'images'::regclass) AS files_about,
       (SELECT count(*) FROM (SELECT FROM image_urls WHERE due_at < now() - interval '10 minutes' LIMIT %(most)s) few) AS overdue,
       i.looked, i.bytes_looked
  FROM (SELECT count(*) AS looked, coalesce(sum(f.bytes), 0)::bigint AS bytes_looked FROM (SELECT bytes FROM images LIMIT %(exact)s) f) i;

-- name: failure_reasons
-- Most say the same in the same words, and a kind is found out for each text once.
SELECT error_template(e.error) AS kind, sum(e.n)::bigint AS n, min(e.error) AS example
  FROM (SELECT f.error, count(*) AS n
          FROM (SELECT coalesce(u.error, 'no reason was noted') AS error FROM image_references u WHERE u.status = 'failed' ORDER BY u.id DESC LIMIT %(most)s) f
         GROUP BY 1 OFFSET 0) e
 GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT %(limit)s;

-- name: failures
SELECT u.id, u.product_id, u.brand, u.url, u.error, u.settled_at, s.attempts, p.name, p.dispensary_id, d.name AS store
  FROM (SELECT * FROM image_references WHERE status = 'failed' AND (%(before)s::bigint IS NULL OR id < %(before)s) ORDER BY id DESC LIMIT %(limit)s) u
  LEFT JOIN image_urls s ON s.id = u.url_id
  LEFT JOIN catalog_products p ON p.id = u.product_id
  LEFT JOIN dispensaries d ON d.id = p.dispensary_id
 ORDER BY u.id DESC;

-- name: newest
SELECT u.id, u.product_id, u.brand, u.path, u.settled_at, p.name
  FROM (SELECT id, product_id, brand, path, settled_at FROM image_references WHERE status = 'stored' ORDER BY id DESC LIMIT %(limit)s) u
  LEFT JOIN catalog_products p ON p.id = u.product_id
 ORDER BY u.id DESC;
