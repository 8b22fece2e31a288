-- Jobs and their queues. Whoever changes a page of a job holds the job's row.

-- name: insert_job
INSERT INTO crawl_jobs (site, provider, keywords, max_pages, country, not_before, next_submission_at, created_at, created_by)
VALUES (%(site)s, %(provider)s, %(keywords)s, %(max_pages)s, %(country)s, %(now)s, %(now)s, %(now)s, %(created_by)s)
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
-- A job that is to be looked at and that nobody has in hand, by a provider that this process knows; those named are passed over.
SELECT * FROM crawl_jobs
 WHERE status = 'running' AND next_submission_at <= %(now)s AND provider = ANY (%(providers)s::text[]) AND id <> ALL (%(but)s::bigint[])
 ORDER BY next_submission_at, id LIMIT 1 FOR UPDATE SKIP LOCKED;

-- name: next_due
SELECT min(next_submission_at) FROM crawl_jobs
 WHERE status = 'running' AND provider = ANY (%(providers)s::text[]) AND id <> ALL (%(but)s::bigint[]);

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

-- name: spare_delivered
-- What has been brought and not been read yet has come in time, however long nobody was there to read it.
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
  UPDATE crawl_jobs SET not_before = %(not_before)s, next_submission_at = %(not_before)s, asking_until = %(asking_until)s,
         mixing_since = CASE WHEN %(mixing)s THEN coalesce(mixing_since, %(now)s) ELSE mixing_since END
   WHERE id = %(job_id)s
)
SELECT * FROM item;

-- name: requested
UPDATE crawl_attempts SET request_id = %(request_id)s WHERE item_id = %(item_id)s AND attempt = %(attempt)s;

-- name: handed_over
-- Nobody else waits for the order any more. One that took so long that another may have begun says nothing.
UPDATE crawl_jobs
   SET asking_until = NULL, not_before = greatest(not_before, %(not_before)s),
       next_submission_at = CASE WHEN status = 'running' THEN greatest(not_before, %(not_before)s) END
 WHERE id = %(id)s AND asking_until = %(asking_until)s;

-- name: look_at
UPDATE crawl_jobs SET next_submission_at = %(at)s WHERE id = %(id)s AND status = 'running';

-- name: look_soon
-- Something has changed: it is looked at as soon as something may be submitted.
UPDATE crawl_jobs SET next_submission_at = greatest(not_before, %(now)s) WHERE id = %(id)s AND status = 'running';

-- name: hold_off
UPDATE crawl_jobs SET not_before = greatest(not_before, %(until)s) WHERE id = %(id)s;

-- name: complete_job
UPDATE crawl_jobs SET status = 'completed', completed_at = %(now)s, next_submission_at = NULL WHERE id = %(id)s;

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

-- name: revive_items
UPDATE crawl_queue SET status = 'pending', retry_count = 0, next_attempt_at = %(now)s, completed_at = NULL
 WHERE job_id = %(job_id)s AND status = 'failed';

-- name: revive_job
UPDATE crawl_jobs SET status = 'running', next_submission_at = %(now)s, completed_at = NULL, cancelled_at = NULL WHERE id = %(id)s
RETURNING *;

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
-- Its other attempts that are open end with it: nobody waits for them any more.
WITH ended AS (
  UPDATE crawl_attempts SET ended_at = %(now)s, ok = CASE WHEN attempt = %(attempt)s THEN true END,
         error = CASE WHEN attempt <> %(attempt)s THEN 'another attempt brought it' END,
         path = CASE WHEN attempt = %(attempt)s THEN coalesce(%(path)s, path) ELSE path END
   WHERE item_id = %(id)s AND (ended_at IS NULL OR attempt = %(attempt)s)
)
UPDATE crawl_queue SET status = 'completed', completed_at = %(now)s, deadline_at = NULL, found = %(found)s, removed = %(removed)s
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

-- name: secret
SELECT secret FROM crawl_secret;
