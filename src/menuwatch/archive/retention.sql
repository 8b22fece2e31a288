-- Payloads past PAYLOAD_DAYS.

-- piece: removable
-- Archived before that time, and neither the first nor the last of its day (UTC): ok ones count before others. Kept are what waits in
-- quarantine or to be applied, what a person released, parts of menus (their crawls must not pass for whole ones), and the store's newest
-- ten applied and ten other payloads, on which the checks of the next menu rest.
SELECT r.id, r.path, r.bytes
  FROM (SELECT p.id, p.path, p.bytes, p.status, p.fetched_at, p.created_at, p.applied_at, p.released_at, p.is_partial,
               d.last_crawled_at, d.last_payload_id,
               row_number() OVER (PARTITION BY p.dispensary_id, day ORDER BY p.status = 'ok' DESC, p.fetched_at, p.id) AS from_first,
               row_number() OVER (PARTITION BY p.dispensary_id, day ORDER BY p.status = 'ok' DESC, p.fetched_at DESC, p.id DESC) AS from_last,
               row_number() OVER (PARTITION BY p.dispensary_id, p.applied_at IS NULL ORDER BY p.fetched_at DESC, p.id DESC) AS newest
          FROM raw_crawl_payloads p JOIN dispensaries d ON d.id = p.dispensary_id
         CROSS JOIN LATERAL (SELECT date_trunc('day', p.fetched_at, 'UTC') AS day) t
         WHERE %(stores)s::integer[] IS NULL OR p.dispensary_id = ANY (%(stores)s)) r
 WHERE r.fetched_at < %(before)s AND r.created_at < %(before)s AND r.from_first > 1 AND r.from_last > 1 AND r.newest > 10
   AND r.status <> 'quarantined' AND r.released_at IS NULL AND NOT r.is_partial AND r.id IS DISTINCT FROM r.last_payload_id
   AND (r.applied_at IS NOT NULL OR r.status <> 'ok' OR r.fetched_at <= r.last_crawled_at)

-- name: next_stores
SELECT id FROM dispensaries WHERE id > %(after)s ORDER BY id LIMIT %(limit)s;

-- name: delete_removable
-- Rows that others hold are left for the next run.
WITH locked AS MATERIALIZED (
  SELECT id FROM raw_crawl_payloads WHERE id IN (SELECT id FROM ({removable} ORDER BY r.id LIMIT %(limit)s) o) FOR UPDATE SKIP LOCKED
)
DELETE FROM raw_crawl_payloads p USING locked l WHERE p.id = l.id RETURNING p.path;

-- name: unreferenced
SELECT DISTINCT u.path FROM unnest(%(paths)s::text[]) u(path)
 WHERE NOT EXISTS (SELECT FROM raw_crawl_payloads p WHERE p.path = u.path);

-- name: totals
-- Files that several rows share count once.
SELECT (SELECT count(*) FROM raw_crawl_payloads) AS payloads, (SELECT min(fetched_at) FROM raw_crawl_payloads) AS oldest,
       (SELECT coalesce(sum(f.bytes), 0)::bigint FROM (SELECT max(bytes) AS bytes FROM raw_crawl_payloads GROUP BY path) f) AS bytes;

-- name: count_removable
SELECT count(*) AS payloads, coalesce(sum(bytes), 0)::bigint AS bytes FROM ({removable}) o;
