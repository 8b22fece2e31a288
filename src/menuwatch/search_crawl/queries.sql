-- Jobs, their queues and products. Changing a page of a job requires the lock on the job's row.

-- name: insert_job
INSERT INTO crawl_jobs (site, provider, keywords, max_pages, country, gap_min_seconds, gap_max_seconds, mixing_threshold, max_retries,
       retry_base_minutes, next_submit_after, next_submission_at, created_at, created_by)
VALUES (%(site)s, %(provider)s, %(keywords)s, %(max_pages)s, %(country)s, %(gap_min_seconds)s, %(gap_max_seconds)s, %(mixing_threshold)s,
       %(max_retries)s, %(retry_base_minutes)s, %(now)s, %(now)s, %(now)s, %(created_by)s)
RETURNING *;

-- name: insert_searches
INSERT INTO crawl_queue (job_id, url, url_type, keyword, page, priority, next_attempt_at, created_at)
SELECT %(job_id)s, n.url, 'search', n.keyword, 1, %(priority)s, %(now)s, %(now)s
  FROM unnest(%(urls)s::text[], %(keywords)s::text[]) WITH ORDINALITY n(url, keyword, place) ORDER BY n.place
    ON CONFLICT (job_id, url) DO NOTHING;

-- name: job
SELECT * FROM crawl_jobs WHERE id = %(id)s;

-- name: lock_job
SELECT * FROM crawl_jobs WHERE id = %(id)s FOR UPDATE;

-- name: take_due
-- A due job that no process holds, with a provider that this process knows; the named jobs are skipped.
SELECT * FROM crawl_jobs
 WHERE status = 'running' AND next_submission_at <= %(now)s AND provider = ANY (%(providers)s::text[]) AND id <> ALL (%(exclude)s::bigint[])
 ORDER BY next_submission_at, id LIMIT 1 FOR UPDATE SKIP LOCKED;

-- name: next_due
SELECT min(next_submission_at) FROM crawl_jobs
 WHERE status = 'running' AND provider = ANY (%(providers)s::text[]) AND id <> ALL (%(exclude)s::bigint[]);

-- name: standing
SELECT EXISTS (SELECT FROM crawl_attempts a WHERE a.job_id = %(job_id)s) AS begun, w.*, s.*
  FROM (SELECT count(*) FILTER (WHERE next_attempt_at <= %(now)s AND priority = 1) AS first_ready,
               count(*) FILTER (WHERE next_attempt_at <= %(now)s AND priority = 2) AS second_ready,
               count(*) FILTER (WHERE next_attempt_at > %(now)s) AS waiting,
               min(next_attempt_at) FILTER (WHERE next_attempt_at > %(now)s) AS retry_at
          FROM crawl_queue WHERE job_id = %(job_id)s AND status = 'pending') w,
       (SELECT count(*) AS under_way, count(*) FILTER (WHERE url_type <> 'product') AS funnel, min(deadline_at) AS deadline_at
          FROM crawl_queue WHERE job_id = %(job_id)s AND status = 'submitted') s;

-- name: overdue
SELECT id, job_id, url, url_type, keyword, status, retry_count, attempt FROM crawl_queue
 WHERE job_id = %(job_id)s AND status = 'submitted' AND deadline_at <= %(now)s ORDER BY deadline_at, id;

-- name: extend_deadlines
-- A delivery that was received but not yet processed arrived in time, however long processing took.
UPDATE crawl_queue q SET deadline_at = %(until)s
 WHERE q.job_id = %(job_id)s AND q.status = 'submitted' AND q.deadline_at <= %(now)s
   AND EXISTS (SELECT FROM crawl_deliveries d WHERE d.item_id = q.id AND (d.ok OR d.attempt = q.attempt));

-- name: submit
-- The page that has so many others ready before it in its priority is submitted, its attempt noted, and the job's next time set.
WITH picked AS (
  SELECT id FROM crawl_queue WHERE job_id = %(job_id)s AND status = 'pending' AND priority = %(priority)s AND next_attempt_at <= %(now)s
   ORDER BY next_attempt_at, id OFFSET %(skip)s LIMIT 1
), item AS (
  UPDATE crawl_queue q SET status = 'submitted', attempt = attempt + 1, submitted_at = %(now)s, deadline_at = %(deadline_at)s
    FROM picked p WHERE q.id = p.id RETURNING q.id, q.job_id, q.url, q.url_type, q.keyword, q.status, q.retry_count, q.attempt
), noted AS (
  INSERT INTO crawl_attempts (item_id, attempt, job_id, submitted_at) SELECT id, attempt, job_id, %(now)s FROM item
), paced AS (
  UPDATE crawl_jobs SET next_submit_after = %(next_submit_after)s, next_submission_at = %(next_submit_after)s, submitting_until = %(submitting_until)s,
         unthrottled_since = CASE WHEN %(mixing)s THEN coalesce(unthrottled_since, %(now)s) ELSE unthrottled_since END
   WHERE id = %(job_id)s
)
SELECT * FROM item;

-- name: requested
UPDATE crawl_attempts SET request_id = %(request_id)s WHERE item_id = %(item_id)s AND attempt = %(attempt)s;

-- name: handed_over
-- Other processes no longer need to wait for the order. No effect if it took so long that another one may have begun.
UPDATE crawl_jobs
   SET submitting_until = NULL, next_submit_after = greatest(next_submit_after, %(next_submit_after)s),
       next_submission_at = CASE WHEN status = 'running' THEN greatest(next_submit_after, %(next_submit_after)s) END
 WHERE id = %(id)s AND submitting_until = %(submitting_until)s;

-- name: schedule_at
UPDATE crawl_jobs SET next_submission_at = %(at)s WHERE id = %(id)s AND status = 'running';

-- name: schedule_now
-- After a change: the job is checked as soon as it may submit.
UPDATE crawl_jobs SET next_submission_at = greatest(next_submit_after, %(now)s) WHERE id = %(id)s AND status = 'running';

-- name: delay_job
UPDATE crawl_jobs SET next_submit_after = greatest(next_submit_after, %(until)s) WHERE id = %(id)s;

-- name: complete_job
WITH ended AS (
  UPDATE crawl_jobs SET status = 'completed', completed_at = %(now)s, next_submission_at = NULL WHERE id = %(id)s RETURNING id, created_at
)
SELECT count(*) FILTER (WHERE q.status = 'completed') AS succeeded, count(*) FILTER (WHERE q.status = 'failed') AS failed,
       (SELECT count(*) FROM crawl_products p WHERE p.job_id = e.id) AS products,
       round(extract(epoch FROM %(now)s::timestamptz - e.created_at))::bigint AS duration_seconds
  FROM ended e LEFT JOIN crawl_queue q ON q.job_id = e.id GROUP BY e.id, e.created_at;

-- name: cancel_job
UPDATE crawl_jobs SET status = 'cancelled', cancelled_at = %(now)s, next_submission_at = NULL WHERE id = %(id)s RETURNING *;

-- name: cancel_items
WITH ended AS (
  UPDATE crawl_queue SET status = 'failed', completed_at = %(now)s, deadline_at = NULL, error_message = %(reason)s
   WHERE job_id = %(job_id)s AND status IN ('pending', 'submitted') RETURNING id, attempt
), noted AS (
  UPDATE crawl_attempts a SET ended_at = %(now)s, error = %(reason)s
    FROM ended e WHERE a.item_id = e.id AND a.attempt = e.attempt AND a.ended_at IS NULL
)
SELECT count(*) FROM ended;

-- name: retry_items
UPDATE crawl_queue SET status = 'pending', retry_count = 0, next_attempt_at = %(now)s, completed_at = NULL
 WHERE job_id = %(job_id)s AND status = 'failed';

-- name: reopen_job
UPDATE crawl_jobs SET status = 'running', next_submission_at = %(now)s, completed_at = NULL, cancelled_at = NULL WHERE id = %(id)s
RETURNING *;

-- name: ended_before
-- The next job that ended before that time, locked; jobs that are locked or running are left alone.
SELECT id FROM crawl_jobs WHERE status <> 'running' AND coalesce(completed_at, cancelled_at) < %(before)s AND id > %(after)s
 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED;

-- name: delete_job
-- With its pages, attempts, deliveries, orders and products.
DELETE FROM crawl_jobs WHERE id = %(id)s;

-- name: item
SELECT id, job_id, url, url_type, keyword, status, retry_count, attempt FROM crawl_queue WHERE id = %(id)s;

-- name: end_attempt
UPDATE crawl_attempts SET ended_at = %(now)s, ok = %(ok)s, error = %(error)s, path = coalesce(%(path)s, path)
 WHERE item_id = %(item_id)s AND attempt = %(attempt)s;

-- name: put_back
UPDATE crawl_queue SET status = 'pending', retry_count = retry_count + 1, next_attempt_at = %(at)s, deadline_at = NULL, error_message = %(error)s
 WHERE id = %(id)s;

-- name: give_up
UPDATE crawl_queue SET status = 'failed', completed_at = %(now)s, deadline_at = NULL, error_message = %(error)s WHERE id = %(id)s;

-- name: complete_item
-- Its other open attempts end with it.
WITH ended AS (
  UPDATE crawl_attempts SET ended_at = %(now)s, ok = CASE WHEN attempt = %(attempt)s THEN true END,
         error = CASE WHEN attempt <> %(attempt)s THEN 'another attempt brought it' END,
         path = CASE WHEN attempt = %(attempt)s THEN coalesce(%(path)s, path) ELSE path END
   WHERE item_id = %(id)s AND (ended_at IS NULL OR attempt = %(attempt)s)
)
UPDATE crawl_queue SET status = 'completed', completed_at = %(now)s, deadline_at = NULL, new_urls = %(new_urls)s, removed = %(removed)s
 WHERE id = %(id)s;

-- name: add_found
WITH added AS (
  INSERT INTO crawl_queue (job_id, url, url_type, keyword, page, priority, next_attempt_at, created_at, parent_id)
  SELECT %(job_id)s, n.url, n.url_type, %(keyword)s, n.page, n.priority, %(now)s, %(now)s, %(parent_id)s
    FROM unnest(%(urls)s::text[], %(types)s::text[], %(pages)s::integer[], %(priorities)s::smallint[])
         WITH ORDINALITY n(url, url_type, page, priority, place) ORDER BY n.place
      ON CONFLICT (job_id, url) DO NOTHING RETURNING id
)
SELECT count(*) FROM added;

-- name: put_product
-- A product may have several URLs: the last one processed wins.
WITH product AS (
  INSERT INTO crawl_products AS p (job_id, item_id, site, site_product_id, keyword, name, url, price_min, price_max, currency, weight_g, listed,
         score, images, seen_at)
  VALUES (%(job_id)s, %(item_id)s, %(site)s, %(site_product_id)s, %(keyword)s, %(name)s, %(url)s, %(price_min)s, %(price_max)s, %(currency)s,
         %(weight_g)s, %(listed)s, %(score)s, %(images)s, %(now)s)
      ON CONFLICT (job_id, site_product_id) DO UPDATE SET item_id = excluded.item_id, name = excluded.name, url = excluded.url,
         price_min = excluded.price_min, price_max = excluded.price_max, currency = excluded.currency, weight_g = excluded.weight_g,
         listed = excluded.listed, score = excluded.score, images = excluded.images, seen_at = excluded.seen_at
  RETURNING p.id
), gone AS (
  DELETE FROM crawl_variants v USING product p WHERE v.product_id = p.id AND v.variant_id <> ALL (%(variant_ids)s::text[])
)
INSERT INTO crawl_variants AS v (product_id, variant_id, place, sku, name, price, weight_g)
SELECT p.id, n.* FROM product p, unnest(%(variant_ids)s::text[], %(places)s::integer[], %(skus)s::text[], %(names)s::text[], %(prices)s::numeric[],
       %(weights)s::numeric[]) n(variant_id, place, sku, name, price, weight_g)
    ON CONFLICT (product_id, variant_id) DO UPDATE SET place = excluded.place, sku = excluded.sku, name = excluded.name,
       price = excluded.price, weight_g = excluded.weight_g;

-- name: secret
SELECT encode(value, 'hex') FROM app_secrets WHERE name = 'crawl_webhooks';
