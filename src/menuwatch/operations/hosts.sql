-- Hosts as people look at them.

-- name: list_hosts
-- `code` and `reason` say why a host is not asked now (null: it is), `until` when it is again (null: when somebody opens it). Sums are of all that was ever asked.
SELECT h.host, h.rate, h.burst, h.concurrency, h.min_gap, h.pace, h.slowed_at, h.paused_at, h.paused_reason, h.cooldown_until, h.throttles,
       h.troubles, h.circuit, h.circuit_opened_at, h.circuit_until, h.circuit_opens, h.circuit_reason,
       jsonb_array_length(h.refused) AS refused, h.last_ok_at, h.last_refused_at, h.robots_checked_at, h.robots_status,
       h.robots_body <> '' AS has_robots, h.crawl_delay, h.created_at, h.updated_at,
       c.code, c.reason, CASE c.code WHEN 'circuit' THEN h.circuit_until WHEN 'cooling' THEN h.cooldown_until END AS until,
       (SELECT count(*) FROM identity_leases l WHERE l.host = h.host AND l.expires_at > clock_timestamp())::integer AS leases,
       coalesce(t.requests, 0)::bigint AS requests, coalesce(t.refusals, 0)::bigint AS refusals
  FROM hosts h
 CROSS JOIN LATERAL host_closed(h, clock_timestamp()) c
  LEFT JOIN LATERAL (
    SELECT sum(f.requests) AS requests, sum(f.requests) FILTER (WHERE f.verdict IN ('blocked', 'challenge', 'rate_limited')) AS refusals
      FROM fetch_totals f WHERE f.host = h.host) t ON true
 WHERE %(host)s::text IS NULL OR h.host = %(host)s ORDER BY h.host;

-- name: host_names
SELECT host FROM hosts ORDER BY host;

-- name: host_leases
-- Who talks to it now.
SELECT l.id, l.proxy_id, l.task_id, l.leased_at, l.expires_at, p.protocol, p.host, p.port, p.username
  FROM identity_leases l JOIN proxies p ON p.id = l.proxy_id
 WHERE l.host = %(host)s AND l.expires_at > clock_timestamp() ORDER BY l.leased_at, l.id;

-- name: host_verdicts
-- All requests by what came of them.
SELECT verdict, requests, bytes FROM fetch_totals WHERE host = %(host)s ORDER BY requests DESC, verdict;

-- name: host_day
-- Those of the last 24 hours.
SELECT verdict, count(*) AS requests, sum(bytes)::bigint AS bytes
  FROM fetch_attempts WHERE host = %(host)s AND attempted_at > now() - interval '24 hours' GROUP BY verdict;

-- name: host_proxy_scores
SELECT s.proxy_id, s.good, s.bad, s.as_of, p.protocol, p.host, p.port, p.username
  FROM proxy_scores s JOIN proxies p ON p.id = s.proxy_id WHERE s.host = %(host)s ORDER BY s.proxy_id;

-- name: host_profile_scores
SELECT profile, good, bad, as_of FROM profile_scores WHERE host = %(host)s ORDER BY profile;

-- name: host_events
-- The newest first.
SELECT id, kind, reason, until, happened_at FROM host_events
 WHERE host = %(host)s AND (%(after_at)s::timestamptz IS NULL OR (happened_at, id) < (%(after_at)s, %(after_id)s::bigint))
 ORDER BY happened_at DESC, id DESC LIMIT %(limit)s;
