-- What a search for tasks can name.

-- name: stores_like
SELECT coalesce(slug, id::text) AS value, concat_ws(', ', name, city, state) AS about FROM dispensaries
 WHERE slug ILIKE %(typed)s OR name ILIKE %(typed)s OR id::text ILIKE %(typed)s
 ORDER BY slug, id LIMIT %(limit)s;

-- name: workers_like
-- Those that have not stopped first.
SELECT worker_id AS value, concat_ws(' ', pod, friendly_name, CASE WHEN status = 'stopped' THEN '(stopped)' END) AS about FROM worker_registry
 WHERE worker_id ILIKE %(typed)s OR friendly_name ILIKE %(typed)s OR pod ILIKE %(typed)s
 ORDER BY status = 'stopped', last_heartbeat_at DESC, worker_id LIMIT %(limit)s;
