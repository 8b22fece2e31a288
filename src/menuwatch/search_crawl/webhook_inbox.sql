-- Deliveries not processed yet, and pages for our own workers to fetch.

-- name: put
-- Stored only for awaited pages. Returns (whether such an attempt exists for that job, kind and provider; id of the row).
WITH known AS (
  SELECT q.status <> 'completed' AND j.status = 'running' AS awaited
    FROM crawl_attempts a JOIN crawl_queue q ON q.id = a.item_id JOIN crawl_jobs j ON j.id = a.job_id
   WHERE a.item_id = %(item_id)s AND a.attempt = %(attempt)s AND a.job_id = %(job_id)s AND q.url_type = %(url_type)s
     AND j.provider = %(provider)s
), made AS (
  INSERT INTO crawl_deliveries (item_id, attempt, received_at, visible_at, ok, error, html, html_url, request_id)
  SELECT %(item_id)s, %(attempt)s, %(now)s, %(now)s, %(ok)s, %(error)s, %(html)s, %(html_url)s, %(request_id)s FROM known k WHERE k.awaited
  RETURNING id
)
SELECT EXISTS (SELECT FROM known), (SELECT id FROM made);

-- name: take
UPDATE crawl_deliveries d SET visible_at = %(until)s, tries = d.tries + 1
  FROM crawl_queue q JOIN crawl_jobs j ON j.id = q.job_id
 WHERE d.id = (SELECT t.id FROM crawl_deliveries t WHERE t.visible_at <= %(now)s ORDER BY t.visible_at, t.id LIMIT 1 FOR UPDATE SKIP LOCKED)
   AND q.id = d.item_id
RETURNING d.id, d.item_id, d.attempt, d.tries, d.ok, d.error, d.html, d.html_url, q.job_id, j.site, q.url, q.url_type;

-- name: postpone
UPDATE crawl_deliveries SET visible_at = %(at)s WHERE id = %(id)s;

-- name: drop
DELETE FROM crawl_deliveries WHERE id = %(id)s;

-- name: drop_of_job
DELETE FROM crawl_deliveries d USING crawl_queue q WHERE q.id = d.item_id AND q.job_id = %(job_id)s;

-- name: order_fetch
INSERT INTO crawl_fetches (item_id, attempt, reference, url, country, visible_at)
VALUES (%(item_id)s, %(attempt)s, %(reference)s, %(url)s, %(country)s, %(now)s)
    ON CONFLICT (item_id, attempt) DO NOTHING RETURNING id;

-- name: take_fetches
-- `awaited`: the page was not delivered otherwise, and its deadline has not passed.
UPDATE crawl_fetches f SET visible_at = %(until)s
 WHERE f.id IN (SELECT t.id FROM crawl_fetches t WHERE t.visible_at <= %(now)s ORDER BY t.visible_at, t.id LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
RETURNING f.id, f.reference, f.url, f.country,
          EXISTS (SELECT FROM crawl_queue q WHERE q.id = f.item_id AND q.status = 'submitted' AND q.attempt = f.attempt) AS awaited;

-- name: postpone_fetch
-- Moves the deadline as well: a postponement is not a failure of the attempt.
WITH later AS (
  UPDATE crawl_fetches SET visible_at = %(at)s WHERE id = %(id)s RETURNING item_id, attempt
)
UPDATE crawl_queue q SET deadline_at = greatest(q.deadline_at, %(deadline_at)s) FROM later l
 WHERE q.id = l.item_id AND q.attempt = l.attempt AND q.status = 'submitted';

-- name: drop_fetch
DELETE FROM crawl_fetches WHERE id = %(id)s;

-- name: drop_fetches_of_job
DELETE FROM crawl_fetches f USING crawl_queue q WHERE q.id = f.item_id AND q.job_id = %(job_id)s;

-- name: next_fetch
SELECT min(visible_at) FROM crawl_fetches;
