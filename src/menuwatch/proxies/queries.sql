-- Proxies: rows, choice, outcomes.

-- name: put_proxy
-- The same address again brings a new password or place, and puts a proxy that was deactivated back to work, unless an operator had
-- taken it out.
-- Its successes stay on record.
INSERT INTO proxies (protocol, host, port, username, password, city, state, country, timezone)
VALUES (%(protocol)s, %(host)s, %(port)s, %(username)s, %(password)s, %(city)s, %(state)s, %(country)s, %(timezone)s)
ON CONFLICT (protocol, host, port, coalesce(username, '')) DO UPDATE SET
       password = EXCLUDED.password, city = coalesce(EXCLUDED.city, proxies.city), state = coalesce(EXCLUDED.state, proxies.state),
       country = coalesce(EXCLUDED.country, proxies.country), timezone = coalesce(EXCLUDED.timezone, proxies.timezone),
       is_active = proxies.disabled_at IS NULL, failure_count = 0, consecutive_403_count = 0, deactivated_at = NULL,
       probe_at = NULL, probe_failures = 0, updated_at = now()
RETURNING id, xmax = 0 AS inserted;

-- name: get_proxy
SELECT * FROM proxies WHERE id = %(id)s;

-- name: list_proxies
SELECT * FROM proxies WHERE %(active)s::boolean IS NULL OR is_active = %(active)s ORDER BY id;

-- name: standing
SELECT count(*) FILTER (WHERE is_active) AS active,
       count(*) FILTER (WHERE NOT is_active AND disabled_at IS NULL) AS inactive,
       count(*) FILTER (WHERE disabled_at IS NOT NULL) AS disabled,
       count(*) FILTER (WHERE is_active AND greatest(failure_count, consecutive_403_count) >= %(failing)s) AS failing,
       extract(epoch FROM min(probe_at) FILTER (WHERE NOT is_active AND disabled_at IS NULL)
                          - clock_timestamp())::double precision AS next_probe_seconds
  FROM proxies;

-- name: take_due
-- The next probe is moved ahead before this one is made: whoever takes them may die of it, and they are taken again later.
WITH due AS (
  SELECT id FROM proxies WHERE NOT is_active AND disabled_at IS NULL AND probe_at <= clock_timestamp()
   ORDER BY probe_at, id LIMIT %(many)s FOR UPDATE SKIP LOCKED
)
UPDATE proxies p SET probe_at = clock_timestamp() + make_interval(secs => %(hold)s) FROM due WHERE p.id = due.id
RETURNING p.*;

-- name: next_probe
SELECT extract(epoch FROM min(probe_at) - clock_timestamp())::double precision
  FROM proxies WHERE NOT is_active AND disabled_at IS NULL;

-- name: reactivate
UPDATE proxies SET is_active = true, failure_count = 0, consecutive_403_count = 0, deactivated_at = NULL, probe_at = NULL,
       probe_failures = 0, updated_at = clock_timestamp()
 WHERE id = %(id)s AND NOT is_active AND disabled_at IS NULL;

-- name: probe_failed
UPDATE proxies SET probe_failures = probe_failures + 1, probe_at = clock_timestamp() + make_interval(secs => %(wait)s),
       last_error = %(error)s, last_failure_at = clock_timestamp(), updated_at = clock_timestamp()
 WHERE id = %(id)s AND NOT is_active AND disabled_at IS NULL;

-- name: put_off_probe
UPDATE proxies SET probe_at = clock_timestamp() + make_interval(secs => %(wait)s)
 WHERE id = %(id)s AND NOT is_active AND disabled_at IS NULL;

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
SELECT id, is_active, success_count, failure_count, consecutive_403_count, avg_response_time_ms
  FROM proxies WHERE id = ANY (%(ids)s::integer[]) ORDER BY id FOR UPDATE;

-- name: save_health
UPDATE proxies p SET
       is_active = h.is_active, success_count = h.success_count, failure_count = h.failure_count,
       consecutive_403_count = h.consecutive_403_count, avg_response_time_ms = h.avg_response_time_ms,
       last_used_at = clock_timestamp(),
       last_failure_at = CASE WHEN h.error IS NULL THEN p.last_failure_at ELSE clock_timestamp() END,
       last_error = coalesce(h.error, p.last_error),
       deactivated_at = CASE WHEN p.is_active AND NOT h.is_active THEN clock_timestamp() ELSE p.deactivated_at END,
       probe_at = CASE WHEN p.is_active AND NOT h.is_active
                       THEN clock_timestamp() + make_interval(secs => %(wait)s * (1 - %(jitter)s * random())) ELSE p.probe_at END,
       probe_failures = CASE WHEN p.is_active AND NOT h.is_active THEN 0 ELSE p.probe_failures END,
       updated_at = clock_timestamp()
  FROM unnest(%(ids)s::integer[], %(is_active)s::boolean[], %(success_count)s::bigint[], %(failure_count)s::integer[],
              %(consecutive_403_count)s::integer[], %(avg_response_time_ms)s::double precision[], %(errors)s::text[])
       h(id, is_active, success_count, failure_count, consecutive_403_count, avg_response_time_ms, error)
 WHERE p.id = h.id;
