-- What was brought and not read yet, and what our own identities are to bring.

-- name: put
-- Of pages that are awaited still. What is returned is (whether such an attempt was made, of that job, kind and provider; number of the row).
WITH known AS (
  SELECT q.status <> 'completed' AND j.status = 'running' AS awaited
    FROM crawl_attempts a JOIN crawl_queue q ON q.id = a.item_id JOIN crawl_jobs j ON j.id = a.job_id
   WHERE a.item_id = %(item_id)s AND a.attempt = %(attempt)s AND a.job_id = %(job_id)s AND q.url_type = %(url_type)s
     AND j.provider = %(provider)s
), made AS (
  INSERT INTO crawl_deliveries (item_id, attempt, received_at, take_at, ok, error, html, html_url, request_id)
  SELECT %(item_id)s, %(attempt)s, %(now)s, %(now)s, %(ok)s, %(error)s, %(html)s, %(html_url)s, %(request_id)s FROM known k WHERE k.awaited
  RETURNING id
)
SELECT EXISTS (SELECT FROM known), (SELECT id FROM made);

-- name: take
UPDATE crawl_deliveries d SET take_at = %(until)s, tries = d.tries + 1
  FROM crawl_queue q JOIN crawl_jobs j ON j.id = q.job_id
 WHERE d.id = (SELECT t.id FROM crawl_deliveries t WHERE t.take_at <= %(now)s ORDER BY t.take_at, t.id LIMIT 1 FOR UPDATE SKIP LOCKED)
   AND q.id = d.item_id
RETURNING d.id, d.item_id, d.attempt, d.tries, d.ok, d.error, d.html, d.html_url, q.job_id, j.site, q.url, q.url_type;

-- name: put_off
UPDATE crawl_deliveries SET take_at = %(at)s WHERE id = %(id)s;

-- name: drop
DELETE FROM crawl_deliveries WHERE id = %(id)s;

-- name: drop_of_job
DELETE FROM crawl_deliveries d USING crawl_queue q WHERE q.id = d.item_id AND q.job_id = %(job_id)s;

-- name: order_fetch
INSERT INTO crawl_fetches (item_id, attempt, reference, url, country, take_at)
VALUES (%(item_id)s, %(attempt)s, %(reference)s, %(url)s, %(country)s, %(now)s)
    ON CONFLICT (item_id, attempt) DO NOTHING RETURNING id;

-- name: take_fetches
-- `awaited`: nobody else has brought the page meanwhile, and its time is not up.
UPDATE crawl_fetches f SET take_at = %(until)s
 WHERE f.id IN (SELECT t.id FROM crawl_fetches t WHERE t.take_at <= %(now)s ORDER BY t.take_at, t.id LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
RETURNING f.id, f.reference, f.url, f.country,
          EXISTS (SELECT FROM crawl_queue q WHERE q.id = f.item_id AND q.status = 'submitted' AND q.attempt = f.attempt) AS awaited;

-- name: put_off_fetch
-- Its time counts from then: that now is not the time is nobody's failure, and no attempt's.
WITH later AS (
  UPDATE crawl_fetches SET take_at = %(at)s WHERE id = %(id)s RETURNING item_id, attempt
)
UPDATE crawl_queue q SET deadline_at = greatest(q.deadline_at, %(deadline_at)s) FROM later l
 WHERE q.id = l.item_id AND q.attempt = l.attempt AND q.status = 'submitted';

-- name: drop_fetch
DELETE FROM crawl_fetches WHERE id = %(id)s;

-- name: drop_fetches_of_job
DELETE FROM crawl_fetches f USING crawl_queue q WHERE q.id = f.item_id AND q.job_id = %(job_id)s;

-- name: next_fetch
SELECT min(take_at) FROM crawl_fetches;
