-- Proxies: rows, choice, outcomes.

-- name: lock_known
SELECT p.id FROM proxies p
  JOIN unnest(%(protocol)s::text[], %(host)s::text[], %(port)s::integer[], %(username)s::text[]) n(protocol, host, port, username)
    ON p.protocol = n.protocol AND p.host = n.host AND p.port = n.port AND coalesce(p.username, '') = coalesce(n.username, '')
 ORDER BY p.id FOR UPDATE OF p;

-- name: put_proxies
-- The same address again brings a new password or place, and puts a proxy that was deactivated back to work, unless an operator had
-- taken it out. Its successes stay on record. One with a `reason` failed its test: it comes in inactive, to be probed later. A known one
-- that could not be tested stays at work or out of it, as it was.
INSERT INTO proxies AS p (protocol, host, port, username, password, city, state, country, timezone,
                          is_active, last_error, last_failure_at, deactivated_at, probe_at)
SELECT n.protocol, n.host, n.port, n.username, n.password, n.city, n.state, n.country, n.timezone,
       n.reason IS NULL, n.reason, CASE WHEN n.reason IS NOT NULL THEN clock_timestamp() END,
       CASE WHEN n.reason IS NOT NULL THEN clock_timestamp() END,
       CASE WHEN n.reason IS NOT NULL THEN clock_timestamp() + make_interval(secs => %(wait)s * (1 - %(jitter)s * random())) END
  FROM unnest(%(protocol)s::text[], %(host)s::text[], %(port)s::integer[], %(username)s::text[], %(password)s::text[],
              %(city)s::text[], %(state)s::text[], %(country)s::text[], %(timezone)s::text[], %(reason)s::text[])
       WITH ORDINALITY n(protocol, host, port, username, password, city, state, country, timezone, reason, place)
 ORDER BY n.place
ON CONFLICT (protocol, host, port, coalesce(username, '')) DO UPDATE SET
       password = EXCLUDED.password, city = coalesce(EXCLUDED.city, p.city), state = coalesce(EXCLUDED.state, p.state),
       country = coalesce(EXCLUDED.country, p.country), timezone = coalesce(EXCLUDED.timezone, p.timezone),
       failure_count = 0, consecutive_403_count = 0, updated_at = clock_timestamp(),
       (is_active, last_error, last_failure_at, deactivated_at, probe_at, probe_failures) = (
         SELECT CASE WHEN u.kept THEN p.is_active ELSE EXCLUDED.is_active AND p.disabled_at IS NULL END,
                CASE WHEN u.kept THEN p.last_error WHEN EXCLUDED.last_error IS NOT NULL THEN EXCLUDED.last_error
                     WHEN NOT starts_with(p.last_error, %(untested_mark)s::text) THEN p.last_error END,
                CASE WHEN u.kept THEN p.last_failure_at ELSE coalesce(EXCLUDED.last_failure_at, p.last_failure_at) END,
                CASE WHEN u.kept THEN p.deactivated_at ELSE EXCLUDED.deactivated_at END,
                CASE WHEN u.kept THEN p.probe_at ELSE EXCLUDED.probe_at END,
                CASE WHEN u.kept THEN p.probe_failures ELSE 0 END
           FROM (SELECT concat_ws(' ', p.protocol, p.host, p.port, coalesce(p.username, '')) = ANY (%(untested)s::text[]) AS kept) u)
RETURNING id, xmax = 0 AS created, is_active, disabled_reason, protocol, host, port, coalesce(username, '') AS username;

-- name: get_proxy
SELECT * FROM proxies WHERE id = %(id)s;

-- name: list_proxies
SELECT * FROM proxies
 WHERE (%(active)s::boolean IS NULL OR is_active = %(active)s) AND id > %(after)s
 ORDER BY id LIMIT %(limit)s;

-- name: get_proxies
SELECT * FROM proxies WHERE id = ANY (%(ids)s::integer[]) ORDER BY id;

-- name: place_proxy
UPDATE proxies SET city = %(city)s, state = %(state)s, country = %(country)s, timezone = %(timezone)s, updated_at = clock_timestamp()
 WHERE id = %(id)s;

-- name: standing
SELECT count(*) FILTER (WHERE is_active) AS active,
       count(*) FILTER (WHERE NOT is_active AND disabled_at IS NULL) AS inactive,
       count(*) FILTER (WHERE disabled_at IS NOT NULL) AS disabled,
       count(*) FILTER (WHERE is_active AND greatest(failure_count, consecutive_403_count) >= %(failing)s) AS failing,
       extract(epoch FROM min(probe_at) FILTER (WHERE NOT is_active AND disabled_at IS NULL)
                          - clock_timestamp())::double precision AS next_probe_seconds
  FROM proxies;

-- name: failing
SELECT * FROM proxies WHERE is_active AND greatest(failure_count, consecutive_403_count) >= %(failing)s
 ORDER BY greatest(failure_count, consecutive_403_count) DESC, id LIMIT %(limit)s;

-- name: inactive
-- Those that their health took out. One that somebody made inactive by SQL of their own has no probe to wait for, and stays out.
SELECT * FROM proxies WHERE NOT is_active AND disabled_at IS NULL AND probe_at IS NOT NULL ORDER BY probe_at, id LIMIT %(limit)s;

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
-- That it could not be tested is no error to be remembered, here and below.
UPDATE proxies SET is_active = true, last_error = CASE WHEN NOT starts_with(last_error, %(untested)s::text) THEN last_error END, failure_count = 0, consecutive_403_count = 0, deactivated_at = NULL, probe_at = NULL,
       probe_failures = 0, updated_at = clock_timestamp()
 WHERE id = %(id)s AND NOT is_active AND disabled_at IS NULL;

-- name: probe_failed
UPDATE proxies SET probe_failures = probe_failures + 1, probe_at = clock_timestamp() + make_interval(secs => %(wait)s),
       last_error = %(error)s, last_failure_at = clock_timestamp(), updated_at = clock_timestamp()
 WHERE id = %(id)s AND NOT is_active AND disabled_at IS NULL;

-- name: tested
UPDATE proxies SET last_error = %(reason)s, updated_at = clock_timestamp()
 WHERE id = %(id)s AND NOT is_active AND starts_with(last_error, %(untested)s::text);

-- name: put_off_probe
UPDATE proxies SET probe_at = clock_timestamp() + make_interval(secs => %(wait)s)
 WHERE id = %(id)s AND NOT is_active AND disabled_at IS NULL;

-- name: disable
UPDATE proxies SET is_active = false, disabled_at = clock_timestamp(), disabled_reason = %(reason)s, probe_at = NULL,
       updated_at = clock_timestamp()
 WHERE id = ANY (%(ids)s::integer[]) RETURNING id;

-- name: enable
-- Clears all counters. One with a `reason` failed its test: it is no longer disabled, and stays out until a probe gets through.
UPDATE proxies p SET
       is_active = e.reason IS NULL, disabled_at = NULL, disabled_reason = NULL, failure_count = 0, consecutive_403_count = 0,
       deactivated_at = CASE WHEN e.reason IS NOT NULL THEN clock_timestamp() END,
       last_error = CASE WHEN e.reason IS NOT NULL THEN e.reason WHEN NOT starts_with(p.last_error, %(untested)s::text) THEN p.last_error END,
       last_failure_at = CASE WHEN e.reason IS NULL THEN p.last_failure_at ELSE clock_timestamp() END,
       probe_at = CASE WHEN e.reason IS NOT NULL
                       THEN clock_timestamp() + make_interval(secs => %(wait)s * (1 - %(jitter)s * random())) END,
       probe_failures = 0, updated_at = clock_timestamp()
  FROM unnest(%(ids)s::integer[], %(reasons)s::text[]) e(id, reason)
 WHERE p.id = e.id RETURNING p.id;

-- name: remove
DELETE FROM proxies WHERE id = ANY (%(ids)s::integer[]) RETURNING id;

-- name: lock_passwords
SELECT id, password FROM proxies WHERE password IS NOT NULL ORDER BY id FOR NO KEY UPDATE;

-- name: save_passwords
UPDATE proxies p SET password = n.password, updated_at = clock_timestamp()
  FROM unnest(%(ids)s::integer[], %(passwords)s::text[]) n(id, password) WHERE p.id = n.id;

-- name: active_count
SELECT count(*) FROM proxies WHERE is_active;

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
