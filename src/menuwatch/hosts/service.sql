-- Hosts for operators.

-- name: list_hosts
-- `code` and `reason` say why a host gets no requests now (null: it does), `until` when it does again (null: when an operator changes it).
-- Sums are of all requests ever sent.
SELECT h.host, h.rate, h.burst, h.concurrency, h.min_gap, h.current_rate, h.rate_reduced_at, h.paused_at, h.paused_reason, h.cooldown_until, h.consecutive_throttles,
       h.consecutive_errors, h.circuit, h.circuit_opened_at, h.circuit_until, h.consecutive_opens, h.circuit_reason,
       jsonb_array_length(h.blocked_identities) AS blocked_identities, h.last_ok_at, h.last_refused_at, h.robots_checked_at, h.robots_status,
       h.robots_body <> '' AS has_robots, h.crawl_delay, h.created_at, h.updated_at,
       c.code, c.reason, c.until,
       (SELECT count(*) FROM identity_leases l WHERE l.host = h.host AND l.expires_at > clock_timestamp())::integer AS leases,
       coalesce(b.n, 0) AS blocked_tasks,
       coalesce(t.requests, 0)::bigint AS requests, coalesce(t.refusals, 0)::bigint AS refusals
  FROM hosts h
 CROSS JOIN LATERAL host_block_reason(h, clock_timestamp()) c
  LEFT JOIN (SELECT l.blocked_by, count(*) AS n FROM live_tasks l WHERE l.wait_state = 'blocked' GROUP BY 1) b ON b.blocked_by = h.host
  LEFT JOIN LATERAL (
    SELECT sum(f.requests) AS requests, sum(f.requests) FILTER (WHERE f.verdict IN ('blocked', 'challenge', 'rate_limited')) AS refusals
      FROM fetch_totals f WHERE f.host = h.host) t ON true
 WHERE %(host)s::text IS NULL OR h.host = %(host)s ORDER BY h.host;

-- name: host_names
SELECT host FROM hosts ORDER BY host;

-- name: host_leases
-- Unexpired leases.
SELECT l.id, l.proxy_id, l.task_id, l.leased_at, l.expires_at, p.protocol, p.host, p.port, p.username
  FROM identity_leases l JOIN proxies p ON p.id = l.proxy_id
 WHERE l.host = %(host)s AND l.expires_at > clock_timestamp() ORDER BY l.leased_at, l.id;

-- name: host_verdicts
-- All requests by verdict.
SELECT verdict, requests, bytes FROM fetch_totals WHERE host = %(host)s ORDER BY requests DESC, verdict;

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

-- name: set_limits
-- A lower limit reduces the current rate at once, with `tat` as in save_state; to a higher one it grows. Where it was at its limit, a
-- reduction before that is over.
UPDATE hosts SET tat = CASE WHEN tat > greatest(clock_timestamp(), last_slot_at)
                            THEN greatest(clock_timestamp(), last_slot_at)
                                 + (tat - greatest(clock_timestamp(), last_slot_at)) * (current_rate / least(current_rate, coalesce(%(rate)s, rate))) ELSE tat END,
       rate = coalesce(%(rate)s, rate), burst = coalesce(%(burst)s, burst), concurrency = coalesce(%(concurrency)s, concurrency),
       min_gap = coalesce(%(min_gap)s, min_gap), current_rate = least(current_rate, coalesce(%(rate)s, rate)),
       rate_reduced_at = CASE WHEN current_rate < rate THEN rate_reduced_at END, updated_at = clock_timestamp()
 WHERE host = %(host)s;

-- name: pause_host
-- A pause that expired is over: the new one begins now.
UPDATE hosts SET paused_at = CASE WHEN paused_until <= clock_timestamp() THEN clock_timestamp() ELSE coalesce(paused_at, clock_timestamp()) END,
       paused_reason = %(reason)s, paused_until = %(until)s, updated_at = clock_timestamp()
 WHERE host = %(host)s;

-- name: resume_host
UPDATE hosts SET paused_at = NULL, paused_reason = NULL, paused_until = NULL, updated_at = clock_timestamp() WHERE host = %(host)s;

-- name: reset_host
UPDATE hosts SET current_rate = rate, rate_changed_at = clock_timestamp(), rate_reduced_at = NULL, tat = NULL, last_slot_at = NULL,
       cooldown_until = NULL, cooldown_reason = NULL, consecutive_throttles = 0, consecutive_errors = 0,
       circuit = 'closed', circuit_opened_at = NULL, circuit_until = NULL, consecutive_opens = 0, circuit_reason = NULL,
       blocked_identities = '[]', updated_at = clock_timestamp()
 WHERE host = %(host)s;
