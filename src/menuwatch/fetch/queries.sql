-- What was asked, through whom, and what came of it.

-- name: insert_attempts
-- All attempts of a task in one statement, each column as an array.
INSERT INTO fetch_attempts (task_id, dispensary_id, host, proxy_id, profile, verdict, status, rotated, bytes, elapsed_ms, error, attempted_at)
SELECT * FROM unnest(
       %(task_id)s::bigint[], %(dispensary_id)s::integer[], %(host)s::text[], %(proxy_id)s::integer[], %(profile)s::text[],
       %(verdict)s::text[], %(status)s::integer[], %(rotated)s::boolean[], %(bytes)s::bigint[], %(elapsed_ms)s::float8[],
       %(error)s::text[], %(attempted_at)s::timestamptz[]);

-- name: traffic
SELECT count(*) AS requests, count(*) FILTER (WHERE verdict IN ('blocked', 'challenge')) AS blocked,
       count(*) FILTER (WHERE rotated) AS rotations, coalesce(sum(bytes), 0)::bigint AS bytes
  FROM fetch_attempts;
