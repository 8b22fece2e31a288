-- Proxies: rows, choice, outcomes.

-- name: put_proxy
-- The same address again brings a new password or place, and puts a proxy that was deactivated back to work.
-- Its successes stay on record.
INSERT INTO proxies (protocol, host, port, username, password, city, state, country, timezone)
VALUES (%(protocol)s, %(host)s, %(port)s, %(username)s, %(password)s, %(city)s, %(state)s, %(country)s, %(timezone)s)
ON CONFLICT (protocol, host, port, coalesce(username, '')) DO UPDATE SET
       password = EXCLUDED.password, city = coalesce(EXCLUDED.city, proxies.city), state = coalesce(EXCLUDED.state, proxies.state),
       country = coalesce(EXCLUDED.country, proxies.country), timezone = coalesce(EXCLUDED.timezone, proxies.timezone),
       is_active = true, failure_count = 0, consecutive_403_count = 0, deactivated_at = NULL, updated_at = now()
RETURNING id, xmax = 0 AS inserted;

-- name: get_proxy
SELECT * FROM proxies WHERE id = %(id)s;

-- name: list_proxies
SELECT * FROM proxies WHERE %(active)s::boolean IS NULL OR is_active = %(active)s ORDER BY id;

-- name: active_count
SELECT count(*) FROM proxies WHERE is_active;

-- name: one_picks
-- Picks follow each other. Locking the row alone would not do: whoever was about to take the same row gets it after the first,
-- though by then another has rested longer.
SELECT pg_advisory_xact_lock(1886550137);

-- name: pick
-- The one that rested longest; those that this process is using come last. A row whose counters are being written is passed
-- over.
UPDATE proxies SET last_used_at = clock_timestamp()
 WHERE id = (SELECT id FROM proxies
              WHERE is_active AND id <> ALL(%(avoid)s)
              ORDER BY id = ANY(%(busy)s), last_used_at NULLS FIRST, id
              LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING *;

-- name: pick_waiting
-- Every candidate was being written: wait for one of them.
UPDATE proxies SET last_used_at = clock_timestamp()
 WHERE id = (SELECT id FROM proxies
              WHERE is_active AND id <> ALL(%(avoid)s)
              ORDER BY id = ANY(%(busy)s), last_used_at NULLS FIRST, id
              LIMIT 1 FOR UPDATE)
RETURNING *;

-- name: lock_health
SELECT is_active, success_count, failure_count, consecutive_403_count, avg_response_time_ms
  FROM proxies WHERE id = %(id)s FOR UPDATE;

-- name: save_health
UPDATE proxies SET
       is_active = %(is_active)s, success_count = %(success_count)s, failure_count = %(failure_count)s,
       consecutive_403_count = %(consecutive_403_count)s, avg_response_time_ms = %(avg_response_time_ms)s,
       last_used_at = clock_timestamp(),
       last_failure_at = CASE WHEN %(error)s::text IS NULL THEN last_failure_at ELSE clock_timestamp() END,
       last_error = coalesce(%(error)s, last_error),
       deactivated_at = CASE WHEN is_active AND NOT %(is_active)s THEN clock_timestamp() ELSE deactivated_at END,
       updated_at = clock_timestamp()
 WHERE id = %(id)s;
