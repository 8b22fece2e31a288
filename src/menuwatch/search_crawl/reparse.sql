-- Reading archived pages again.

-- name: archived
-- Pages with an archived body, each with that of its good attempt, else of its newest.
SELECT q.id, q.url, q.url_type, q.status, q.attempt, a.attempt AS archived_attempt, a.path
  FROM crawl_queue q
  JOIN LATERAL (SELECT attempt, path FROM crawl_attempts WHERE item_id = q.id AND path IS NOT NULL
                 ORDER BY (ok IS TRUE) DESC, attempt DESC LIMIT 1) a ON true
 WHERE q.job_id = %(job_id)s AND q.status <> 'submitted' AND q.id > %(after)s ORDER BY q.id LIMIT %(limit)s;

-- name: new_urls
SELECT u.url FROM unnest(%(urls)s::text[]) u(url)
 WHERE NOT EXISTS (SELECT FROM crawl_queue q WHERE q.job_id = %(job_id)s AND q.url = u.url);

-- name: correct_item
UPDATE crawl_queue SET removed = %(removed)s, new_urls = coalesce(new_urls, 0) + %(added)s
 WHERE id = %(id)s AND (removed <> %(removed)s OR %(added)s > 0);

-- name: delete_others
-- Products that an earlier reading of the page found, and this one does not.
DELETE FROM crawl_products WHERE job_id = %(job_id)s AND item_id = %(item_id)s AND site_product_id IS DISTINCT FROM %(site_product_id)s;

-- name: product_state
SELECT p.item_id, p.name, p.url, p.price_min, p.price_max, p.currency, p.weight_g, p.listed, p.score, p.images,
       ARRAY(SELECT to_jsonb(v) - 'product_id' FROM crawl_variants v WHERE v.product_id = p.id ORDER BY v.place) AS variants
  FROM crawl_products p WHERE p.job_id = %(job_id)s AND p.site_product_id = %(site_product_id)s;

-- name: with_pages
-- Ids of the crawls with an archived page.
SELECT j.id FROM crawl_jobs j WHERE EXISTS (SELECT FROM crawl_attempts a WHERE a.job_id = j.id AND a.path IS NOT NULL) ORDER BY j.id;
