-- What became of requests, by the hour: read through the index on time, as long as the rows are kept.

-- name: hours
-- Of every host since that hour began. Hours are those of UTC.
SELECT a.host, date_trunc('hour', a.attempted_at, 'UTC') AS hour, a.verdict, count(*)::integer AS requests
  FROM fetch_attempts a WHERE a.attempted_at >= %(since)s::timestamptz AND a.attempted_at <= now()
 GROUP BY 1, 2, 3;
