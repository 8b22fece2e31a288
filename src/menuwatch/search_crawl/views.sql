-- Search crawls as the interfaces show them.

-- piece: summary
       j.id, j.site, j.provider, j.status, j.keywords, j.max_pages, j.country, j.gap_min_seconds, j.gap_max_seconds,
       j.mixing_threshold, j.max_retries, j.retry_base_minutes, j.unthrottled_since, j.next_submission_at,
       j.created_at, j.created_by, j.completed_at, j.cancelled_at,
       coalesce(c.pages, 0) AS pages, coalesce(c.pending, 0) AS pending, coalesce(c.submitted, 0) AS submitted,
       coalesce(c.completed, 0) AS completed, coalesce(c.failed, 0) AS failed,
       (SELECT count(*) FROM crawl_products p WHERE p.job_id = j.id) AS products

-- piece: counts
  LEFT JOIN LATERAL (SELECT count(*) AS pages, count(*) FILTER (WHERE q.status = 'pending') AS pending,
                            count(*) FILTER (WHERE q.status = 'submitted') AS submitted,
                            count(*) FILTER (WHERE q.status = 'completed') AS completed,
                            count(*) FILTER (WHERE q.status = 'failed') AS failed
                       FROM crawl_queue q WHERE q.job_id = j.id) c ON true

-- name: jobs
SELECT {summary}
  FROM (SELECT * FROM crawl_jobs WHERE (%(status)s::text IS NULL OR status = %(status)s) AND (%(after)s::bigint IS NULL OR id < %(after)s)
         ORDER BY id DESC LIMIT %(limit)s) j
  {counts} ORDER BY j.id DESC;

-- name: job
SELECT {summary} FROM crawl_jobs j {counts} WHERE j.id = %(id)s;

-- name: by_type
SELECT url_type, count(*) AS pages, count(*) FILTER (WHERE status = 'pending') AS pending,
       count(*) FILTER (WHERE status = 'submitted') AS submitted, count(*) FILTER (WHERE status = 'completed') AS completed,
       count(*) FILTER (WHERE status = 'failed') AS failed, count(*) FILTER (WHERE removed) AS removed
  FROM crawl_queue WHERE job_id = %(id)s GROUP BY url_type ORDER BY array_position(ARRAY['search', 'pagination', 'product'], url_type);

-- name: by_keyword
SELECT q.keyword, count(*) AS pages, count(*) FILTER (WHERE q.status = 'completed') AS completed,
       count(*) FILTER (WHERE q.status = 'failed') AS failed, count(*) FILTER (WHERE q.url_type = 'product') AS product_pages
  FROM crawl_queue q WHERE q.job_id = %(id)s GROUP BY q.keyword ORDER BY min(q.id);

-- name: attempts_in_all
SELECT count(*) AS submissions, count(*) FILTER (WHERE attempt > 1) AS retries, count(*) FILTER (WHERE ok) AS good,
       count(*) FILTER (WHERE ok IS FALSE) AS bad, min(submitted_at) AS first_at, max(submitted_at) AS last_at,
       round(avg(extract(epoch FROM ended_at - submitted_at)) FILTER (WHERE ok), 1)::float8 AS mean_wait_seconds
  FROM crawl_attempts WHERE job_id = %(id)s;

-- name: errors
-- Why pages failed or wait for another try, the most first.
SELECT error_fingerprint(error_message) AS cause, error_template(error_message) AS error, count(*) AS pages, count(*) FILTER (WHERE status = 'failed') AS failed
  FROM crawl_queue WHERE job_id = %(id)s AND status IN ('failed', 'pending') AND error_message IS NOT NULL
 GROUP BY 1, 2 ORDER BY pages DESC, cause LIMIT 10;

-- name: list_items
SELECT q.id, q.url, q.url_type, q.keyword, q.page, q.priority, q.status, q.retry_count, q.attempt, q.next_attempt_at, q.created_at,
       q.submitted_at, q.deadline_at, q.completed_at, q.error_message, q.parent_id, q.new_urls, q.removed
  FROM crawl_queue q
 WHERE q.job_id = %(id)s AND (%(status)s::text IS NULL OR q.status = %(status)s) AND (%(url_type)s::text IS NULL OR q.url_type = %(url_type)s)
   AND (%(keyword)s::text IS NULL OR q.keyword = %(keyword)s) AND q.id > %(after)s::bigint
 ORDER BY q.id LIMIT %(limit)s;

-- name: attempts
-- Newest first: the timeline.
SELECT a.submitted_at, a.item_id, a.attempt, q.url, q.url_type, q.keyword, a.request_id, a.ended_at, a.ok, a.error, a.path
  FROM crawl_attempts a JOIN crawl_queue q ON q.id = a.item_id
 WHERE a.job_id = %(id)s
   AND (%(at)s::timestamptz IS NULL OR (a.submitted_at, a.item_id) < (%(at)s::timestamptz, %(item)s::bigint))
 ORDER BY a.submitted_at DESC, a.item_id DESC LIMIT %(limit)s;

-- name: timeline
-- Submissions and their outcomes in intervals of so many seconds.
SELECT date_bin(%(seconds)s * interval '1 second', submitted_at, '2000-01-01Z') AS at, count(*) AS submissions,
       count(*) FILTER (WHERE ok) AS good, count(*) FILTER (WHERE ok IS FALSE) AS bad
  FROM crawl_attempts WHERE job_id = %(id)s GROUP BY 1 ORDER BY 1;

-- piece: product
       p.id, p.job_id, p.site_product_id, p.keyword, p.name, p.url, p.price_min, p.price_max, p.currency, p.weight_g, p.listed, p.score,
       p.images, p.seen_at, (SELECT count(*) FROM crawl_variants v WHERE v.product_id = p.id) AS variant_count

-- name: products
-- The best first.
SELECT {product} FROM crawl_products p
 WHERE p.job_id = %(id)s AND (%(keyword)s::text IS NULL OR p.keyword = %(keyword)s)
   AND (%(search)s::text IS NULL OR p.name ILIKE %(search)s)
   AND (%(score)s::numeric IS NULL OR (p.score, p.id) < (%(score)s::numeric, %(after)s::bigint))
 ORDER BY p.score DESC, p.id DESC LIMIT %(limit)s;

-- name: product
SELECT {product} FROM crawl_products p WHERE p.job_id = %(job_id)s AND p.id = %(id)s;

-- name: variants
SELECT variant_id, sku, name, price, weight_g FROM crawl_variants WHERE product_id = %(id)s ORDER BY place;
