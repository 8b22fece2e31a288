-- What became of requests, by the hour: read through the indexes on time, host or proxy, as long as the rows are kept. Hours are those of UTC.

-- name: hours
-- Of every host since that hour began, or of one host, or through one proxy. `peak`: requests of the busiest minute. Never prepared: planned
-- for each call, so that a filter that is not set costs nothing.
WITH minutes AS (
  SELECT a.host, a.verdict, date_trunc('minute', a.attempted_at, 'UTC') AS minute, count(*) AS requests, sum(a.bytes) AS bytes,
         sum(a.elapsed_ms) AS elapsed_ms, sum(count(*)) OVER (PARTITION BY a.host, date_trunc('minute', a.attempted_at, 'UTC')) AS in_minute
    FROM fetch_attempts a
   WHERE a.attempted_at >= %(since)s::timestamptz AND a.attempted_at <= now()
     AND (%(host)s::text IS NULL OR a.host = %(host)s) AND (%(proxy_id)s::integer IS NULL OR a.proxy_id = %(proxy_id)s)
   GROUP BY 1, 2, 3)
SELECT m.host, date_trunc('hour', m.minute, 'UTC') AS hour, m.verdict, sum(m.requests)::integer AS requests, sum(m.bytes)::bigint AS bytes,
       sum(m.elapsed_ms)::double precision AS elapsed_ms, max(m.in_minute)::integer AS peak
  FROM minutes m GROUP BY 1, 2, 3;
