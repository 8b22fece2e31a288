-- What became of requests in the last 24 hours, by the hour: read through the index on time, as long as the rows are kept.

-- name: hours
-- `ago` counts whole hours back from now. Of one host, or of all.
SELECT a.host, floor(extract(epoch FROM now() - a.attempted_at) / 3600)::integer AS ago,
       count(*) FILTER (WHERE a.verdict IN ('ok', 'empty_suspect', 'schema_changed'))::integer AS answered,
       count(*) FILTER (WHERE a.verdict IN ('blocked', 'challenge', 'rate_limited'))::integer AS refused,
       count(*) FILTER (WHERE a.verdict NOT IN ('ok', 'empty_suspect', 'schema_changed', 'blocked', 'challenge', 'rate_limited'))::integer AS failed
  FROM fetch_attempts a
 WHERE a.attempted_at > now() - interval '24 hours' AND a.attempted_at <= now() AND (%(host)s::text IS NULL OR a.host = %(host)s)
 GROUP BY a.host, ago;
