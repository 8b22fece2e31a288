-- Log lines of workers.

-- name: insert_lines
-- All lines in one statement, each column as an array. Their commit does not wait for the disk: a crash of the server may lose the last ones.
WITH eased AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO log_lines (worker_id, seq, at, level, action, message, task_id, attempt, details, dropped, dropped_since)
SELECT %(worker)s::text, coalesce((SELECT max(l.seq) FROM log_lines l WHERE l.worker_id = %(worker)s::text), 0) + n.place,
       n.at, n.level, n.action, n.message, n.task_id, n.attempt, n.details::json, n.dropped, n.dropped_since
  FROM eased, unnest(%(at)s::timestamptz[], %(level)s::text[], %(action)s::text[], %(message)s::text[], %(task_id)s::bigint[],
                     %(attempt)s::integer[], %(details)s::text[], %(dropped)s::integer[], %(dropped_since)s::timestamptz[])
         WITH ORDINALITY n(at, level, action, message, task_id, attempt, details, dropped, dropped_since, place);

-- piece: line_columns
l.worker_id, l.seq, l.at, l.level, l.action, l.message, l.task_id, l.attempt, l.details, l.dropped

-- name: lines_of_worker
-- Newest first, from the line `before` back to the line `after`.
SELECT {line_columns} FROM log_lines l
 WHERE l.worker_id = %(worker)s::text AND l.level = ANY (%(levels)s::text[])
   AND l.seq < coalesce(%(before)s::bigint, 9223372036854775807) AND l.seq > coalesce(%(after)s::bigint, 0)
 ORDER BY l.seq DESC LIMIT %(limit)s;

-- name: lines_of_task
-- Newest first.
SELECT {line_columns} FROM log_lines l
 WHERE l.task_id = %(task)s::bigint AND l.level = ANY (%(levels)s::text[])
   AND (%(before_at)s::timestamptz IS NULL
        OR (l.at, l.worker_id, l.seq) < (%(before_at)s, %(before_worker)s::text, %(before_seq)s::bigint))
   AND (%(after_at)s::timestamptz IS NULL
        OR (l.at, l.worker_id, l.seq) > (%(after_at)s, %(after_worker)s::text, %(after_seq)s::bigint))
 ORDER BY l.at DESC, l.worker_id DESC, l.seq DESC LIMIT %(limit)s;

-- name: first_line
SELECT seq, at FROM log_lines WHERE worker_id = %(worker)s::text ORDER BY seq LIMIT 1;

-- name: gaps
-- What is missing of workers' lines during attempts: lines that were dropped, and whether the lines of the beginning are deleted.
SELECT coalesce(sum(d.dropped), 0)::bigint AS dropped,
       coalesce(bool_or(a.began < %(kept_since)s::timestamptz OR (f.seq > 1 AND f.at > a.began)), false) AS deleted
  FROM unnest(%(workers)s::text[], %(began)s::timestamptz[], %(ended)s::timestamptz[]) a(worker_id, began, ended)
  LEFT JOIN LATERAL (SELECT l.seq, l.at FROM log_lines l WHERE l.worker_id = a.worker_id ORDER BY l.seq LIMIT 1) f ON true
  LEFT JOIN LATERAL (SELECT sum(l.dropped) AS dropped FROM log_lines l
                      WHERE l.worker_id = a.worker_id AND l.dropped > 0 AND l.at >= a.began
                        AND l.dropped_since <= coalesce(a.ended, 'infinity')) d ON true;

-- name: delete_expired
DELETE FROM log_lines WHERE at < %(before)s::timestamptz;

-- name: delete_surplus
-- The lines of each worker but its newest ones.
WITH w AS (SELECT worker_id, max(seq) - %(lines)s::bigint AS last FROM log_lines GROUP BY worker_id)
DELETE FROM log_lines l USING w WHERE l.worker_id = w.worker_id AND l.seq <= w.last;
