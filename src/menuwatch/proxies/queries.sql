-- Proxies: rows, choice, outcomes.

-- piece: described
-- Address without the password, and status; `untested` ones are inactive because their test could not be made yet.
CROSS JOIN LATERAL (
    SELECT p.protocol || '://' || coalesce(nullif(p.username, '') || '@', '')
           || CASE WHEN strpos(p.host, ':') > 0 THEN '[' || p.host || ']' ELSE p.host END || ':' || p.port AS address,
           CASE WHEN p.is_active THEN 'active' WHEN p.disabled_at IS NOT NULL THEN 'disabled'
                WHEN p.probe_state = 'untested' THEN 'untested' ELSE 'inactive' END AS status) a

-- piece: selected
-- From `failing` faults or refusals in a row on, an active proxy counts as failing.
(%(ids)s::integer[] IS NULL OR p.id = ANY (%(ids)s))
   AND (%(active)s::boolean IS NULL OR p.is_active = %(active)s)
   AND (%(status)s::text IS NULL
        OR CASE %(status)s WHEN 'failing' THEN p.is_active AND greatest(p.failure_count, p.consecutive_403_count) >= %(failing)s
                           ELSE a.status = %(status)s END)
   AND (%(tag)s::text IS NULL OR %(tag)s = ANY (p.tags))
   AND (%(q)s::text IS NULL
        OR concat_ws(' ', a.address, p.city, p.state, p.country) ILIKE %(q)s)

-- name: lock_known
SELECT p.id FROM proxies p
  JOIN unnest(%(protocol)s::text[], %(host)s::text[], %(port)s::integer[], %(username)s::text[]) n(protocol, host, port, username)
    ON p.protocol = n.protocol AND p.host = n.host AND p.port = n.port AND coalesce(p.username, '') = coalesce(n.username, '')
 ORDER BY p.id FOR UPDATE OF p;

-- name: put_proxies
-- The same address again brings a new password or place, and puts a proxy that was deactivated back to work, unless an operator had
-- taken it out. Its successes stay on record. One with a `reason` failed its test or could not be tested (`probe_state`): it comes in
-- inactive, to be probed later. A known one that could not be tested stays at work or out of it, as it was.
INSERT INTO proxies AS p (protocol, host, port, username, password, city, state, country, timezone,
                          is_active, last_error, probe_state, last_failure_at, deactivated_at, probe_at)
SELECT n.protocol, n.host, n.port, n.username, n.password, n.city, n.state, n.country, n.timezone,
       n.reason IS NULL, n.reason, n.probe_state, CASE WHEN n.probe_state = 'failed' THEN clock_timestamp() END,
       CASE WHEN n.reason IS NOT NULL THEN clock_timestamp() END,
       CASE WHEN n.reason IS NOT NULL THEN clock_timestamp() + make_interval(secs => %(wait)s * (1 - %(jitter)s * random())) END
  FROM unnest(%(protocol)s::text[], %(host)s::text[], %(port)s::integer[], %(username)s::text[], %(password)s::text[],
              %(city)s::text[], %(state)s::text[], %(country)s::text[], %(timezone)s::text[], %(reason)s::text[], %(probe_state)s::text[])
       WITH ORDINALITY n(protocol, host, port, username, password, city, state, country, timezone, reason, probe_state, place)
 ORDER BY n.place
ON CONFLICT (protocol, host, port, coalesce(username, '')) DO UPDATE SET
       password = EXCLUDED.password, city = coalesce(EXCLUDED.city, p.city), state = coalesce(EXCLUDED.state, p.state),
       country = coalesce(EXCLUDED.country, p.country), timezone = coalesce(EXCLUDED.timezone, p.timezone),
       failure_count = 0, consecutive_403_count = 0, updated_at = clock_timestamp(),
       (is_active, last_error, probe_state, last_failure_at, deactivated_at, probe_at, probe_failures) = (
         SELECT CASE WHEN u.kept THEN p.is_active ELSE EXCLUDED.is_active AND p.disabled_at IS NULL END,
                CASE WHEN u.kept THEN p.last_error WHEN EXCLUDED.last_error IS NOT NULL THEN EXCLUDED.last_error
                     WHEN p.probe_state IS DISTINCT FROM 'untested' THEN p.last_error END,
                CASE WHEN u.kept THEN p.probe_state ELSE EXCLUDED.probe_state END,
                CASE WHEN u.kept THEN p.last_failure_at ELSE coalesce(EXCLUDED.last_failure_at, p.last_failure_at) END,
                CASE WHEN u.kept THEN p.deactivated_at ELSE EXCLUDED.deactivated_at END,
                CASE WHEN u.kept THEN p.probe_at ELSE EXCLUDED.probe_at END,
                CASE WHEN u.kept THEN p.probe_failures ELSE 0 END
           FROM (SELECT EXCLUDED.probe_state IS NOT DISTINCT FROM 'untested' AS kept) u)
RETURNING id, xmax = 0 AS created, is_active, disabled_reason, protocol, host, port, coalesce(username, '') AS username;

-- name: proxy_rows
SELECT * FROM proxies
 WHERE (%(ids)s::integer[] IS NULL OR id = ANY (%(ids)s)) AND (%(active)s::boolean IS NULL OR is_active = %(active)s)
 ORDER BY id;

-- name: list_proxies
-- Without passwords, in the order of `sort` (service.SORTS), from `offset` on: there are some thousand proxies, so pages are counted off.
-- `success_rate` is that of all hosts; observations lose half their weight in `half_life` seconds.
SELECT p.id, a.address, p.protocol, p.host, p.port, p.username, coalesce(p.password <> '', false) AS has_password,
       coalesce(starts_with(p.password, %(encrypted)s::text), false) AS password_sealed, a.status,
       CASE WHEN NOT p.is_active THEN coalesce(nullif(p.disabled_reason, ''), nullif(p.last_error, ''), 'it was disabled') END AS reason,
       p.city, p.state, p.country, p.timezone, p.tags, s.success_rate, p.success_count, p.failure_count, p.consecutive_403_count,
       p.avg_response_time_ms, p.last_used_at, p.last_failure_at, p.last_error, p.deactivated_at, p.disabled_at, p.disabled_reason,
       p.probe_at, p.probe_failures, p.created_at, p.updated_at
  FROM proxies p
 {described}
  LEFT JOIN (
    SELECT o.proxy_id, CASE WHEN sum((o.good + o.bad) * w.weight) >= %(negligible)s
                            THEN sum(o.good * w.weight) / sum((o.good + o.bad) * w.weight) END AS success_rate
      FROM proxy_scores o
     CROSS JOIN LATERAL (SELECT 0.5 ^ (greatest(extract(epoch FROM now() - o.as_of), 0) / %(half_life)s::double precision) AS weight) w
     WHERE %(ids)s::integer[] IS NULL OR o.proxy_id = ANY (%(ids)s)
     GROUP BY o.proxy_id) s ON s.proxy_id = p.id
 WHERE {selected} AND p.id > %(after)s
 ORDER BY CASE %(sort)s::text WHEN 'address' THEN a.address END, CASE %(sort)s::text WHEN '-address' THEN a.address END DESC,
          CASE %(sort)s::text WHEN 'success' THEN s.success_rate END, CASE %(sort)s::text WHEN '-success' THEN s.success_rate END DESC NULLS LAST,
          CASE %(sort)s::text WHEN 'failures' THEN greatest(p.failure_count, p.consecutive_403_count) END,
          CASE %(sort)s::text WHEN '-failures' THEN greatest(p.failure_count, p.consecutive_403_count) END DESC,
          CASE %(sort)s::text WHEN 'latency' THEN p.avg_response_time_ms END, CASE %(sort)s::text WHEN '-latency' THEN p.avg_response_time_ms END DESC NULLS LAST,
          CASE %(sort)s::text WHEN 'used' THEN p.last_used_at END, CASE %(sort)s::text WHEN '-used' THEN p.last_used_at END DESC NULLS LAST,
          CASE %(sort)s::text WHEN '-id' THEN p.id END DESC, p.id
 LIMIT %(limit)s OFFSET %(offset)s;

-- name: select_proxies
SELECT p.id, a.status, p.tags FROM proxies p {described} WHERE {selected} ORDER BY p.id;

-- name: count_selected
SELECT count(*)::integer AS proxies FROM proxies p {described} WHERE {selected};

-- name: count_tags
SELECT t.tag, count(*)::integer AS proxies FROM proxies p, unnest(p.tags) t(tag) GROUP BY t.tag ORDER BY t.tag;

-- name: proxy_hosts
SELECT s.host, s.good, s.bad, s.as_of FROM proxy_scores s WHERE s.proxy_id = %(id)s ORDER BY s.host LIMIT 50;

-- name: save_details
UPDATE proxies SET city = %(city)s, state = %(state)s, country = %(country)s, timezone = %(timezone)s, tags = %(tags)s::text[],
       updated_at = clock_timestamp()
 WHERE id = %(id)s;

-- name: add_tag
UPDATE proxies SET tags = ARRAY(SELECT t.one FROM unnest(tags || %(tag)s::text) t(one) ORDER BY t.one COLLATE "C"), updated_at = clock_timestamp()
 WHERE id = ANY (%(ids)s::integer[]) AND %(tag)s <> ALL (tags);

-- name: remove_tag
UPDATE proxies SET tags = array_remove(tags, %(tag)s::text), updated_at = clock_timestamp() WHERE id = ANY (%(ids)s::integer[]);

-- name: count_proxies
SELECT count(*) FILTER (WHERE is_active) AS active,
       count(*) FILTER (WHERE NOT is_active AND disabled_at IS NULL AND probe_state IS DISTINCT FROM 'untested') AS inactive,
       count(*) FILTER (WHERE NOT is_active AND disabled_at IS NULL AND probe_state = 'untested') AS untested,
       count(*) FILTER (WHERE disabled_at IS NOT NULL) AS disabled,
       count(*) FILTER (WHERE is_active AND greatest(failure_count, consecutive_403_count) >= %(failing)s) AS failing,
       extract(epoch FROM min(probe_at) FILTER (WHERE NOT is_active AND disabled_at IS NULL)
                          - clock_timestamp())::double precision AS next_probe_seconds
  FROM proxies;

-- name: failing
SELECT * FROM proxies WHERE is_active AND greatest(failure_count, consecutive_403_count) >= %(failing)s
 ORDER BY greatest(failure_count, consecutive_403_count) DESC, id LIMIT %(limit)s;

-- name: inactive
-- Proxies deactivated by their health, or not tested yet. One that was made inactive by hand in SQL has no probe planned, and stays inactive.
SELECT * FROM proxies WHERE NOT is_active AND disabled_at IS NULL AND probe_at IS NOT NULL ORDER BY probe_at, id LIMIT %(limit)s;

-- name: take_due
-- The next probe is scheduled before this one is made: if the process dies, another one probes them later. Active ones are tested
-- again because an operator asked for it.
WITH due AS (
  SELECT id FROM proxies WHERE disabled_at IS NULL AND probe_at <= clock_timestamp()
   ORDER BY probe_at, id LIMIT %(many)s FOR UPDATE SKIP LOCKED
)
UPDATE proxies p SET probe_at = clock_timestamp() + make_interval(secs => %(hold)s) FROM due WHERE p.id = due.id
RETURNING p.*;

-- name: next_probe
SELECT extract(epoch FROM min(probe_at) - clock_timestamp())::double precision
  FROM proxies WHERE disabled_at IS NULL AND probe_at IS NOT NULL;

-- name: retest
UPDATE proxies SET probe_at = clock_timestamp(), updated_at = clock_timestamp()
 WHERE id = ANY (%(ids)s::integer[]) AND disabled_at IS NULL;

-- name: retested
-- An active proxy passed the test that an operator asked for.
UPDATE proxies SET probe_at = NULL, updated_at = clock_timestamp() WHERE id = %(id)s AND is_active;

-- name: reactivate
-- That it could not be tested is no error to keep, here and below.
UPDATE proxies SET is_active = true, last_error = CASE WHEN probe_state IS DISTINCT FROM 'untested' THEN last_error END,
       probe_state = NULL, failure_count = 0, consecutive_403_count = 0, deactivated_at = NULL, probe_at = NULL,
       probe_failures = 0, updated_at = clock_timestamp()
 WHERE id = %(id)s AND NOT is_active AND disabled_at IS NULL;

-- name: probe_failed
-- An active one failed the test that an operator asked for, unless it was enabled again in the meantime (`probe_at` null).
UPDATE proxies SET probe_failures = probe_failures + 1, probe_at = clock_timestamp() + make_interval(secs => %(wait)s),
       last_error = %(error)s, probe_state = 'failed', last_failure_at = clock_timestamp(), updated_at = clock_timestamp(),
       is_active = false, deactivated_at = CASE WHEN is_active THEN clock_timestamp() ELSE deactivated_at END
 WHERE id = %(id)s AND disabled_at IS NULL AND (NOT is_active OR probe_at IS NOT NULL);

-- name: tested
-- One that is inactive because it could not be tested, and was tested since.
UPDATE proxies SET last_error = %(reason)s, probe_state = %(state)s, updated_at = clock_timestamp()
 WHERE id = %(id)s AND NOT is_active AND probe_state = 'untested';

-- name: postpone_probe
UPDATE proxies SET probe_at = clock_timestamp() + make_interval(secs => %(wait)s)
 WHERE id = %(id)s AND disabled_at IS NULL AND (NOT is_active OR probe_at IS NOT NULL);

-- name: disable
UPDATE proxies SET is_active = false, disabled_at = clock_timestamp(), disabled_reason = %(reason)s, probe_at = NULL,
       updated_at = clock_timestamp()
 WHERE id = ANY (%(ids)s::integer[]) RETURNING id;

-- name: enable
-- Clears all counters. One with a `reason` failed its test: it is no longer disabled, and stays out until a probe gets through.
UPDATE proxies p SET
       is_active = e.reason IS NULL, disabled_at = NULL, disabled_reason = NULL, failure_count = 0, consecutive_403_count = 0,
       deactivated_at = CASE WHEN e.reason IS NOT NULL THEN clock_timestamp() END,
       last_error = CASE WHEN e.reason IS NOT NULL THEN e.reason WHEN p.probe_state IS DISTINCT FROM 'untested' THEN p.last_error END,
       probe_state = e.probe_state,
       last_failure_at = CASE WHEN e.probe_state = 'failed' THEN clock_timestamp() ELSE p.last_failure_at END,
       probe_at = CASE WHEN e.reason IS NOT NULL
                       THEN clock_timestamp() + make_interval(secs => %(wait)s * (1 - %(jitter)s * random())) END,
       probe_failures = 0, updated_at = clock_timestamp()
  FROM unnest(%(ids)s::integer[], %(reasons)s::text[], %(probe_states)s::text[]) e(id, reason, probe_state)
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

-- name: wake_workers
-- Idle workers claim at commit; a proxy that works again may be what their tasks waited for.
SELECT pg_notify('menuwatch_tasks', '');
