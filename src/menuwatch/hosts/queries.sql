-- Rows of hosts: state, events, availability, robots.txt.

-- name: add_host
INSERT INTO hosts (host, rate, burst, concurrency, min_gap, current_rate)
VALUES (%(host)s, %(rate)s, %(burst)s, %(concurrency)s, %(min_gap)s, %(rate)s) ON CONFLICT DO NOTHING;

-- name: lock_states
SELECT host, rate, current_rate, rate_changed_at, rate_reduced_at, cooldown_until, cooldown_reason, consecutive_throttles, consecutive_errors, circuit, circuit_opened_at, circuit_until,
       consecutive_opens, circuit_reason, blocked_identities, last_ok_at, last_refused_at, clock_timestamp() AS now,
       (SELECT count(*) FROM proxies WHERE is_active) AS proxies
  FROM hosts WHERE host = ANY (%(hosts)s::text[]) ORDER BY host FOR NO KEY UPDATE;

-- name: save_state
-- A change of the rate keeps the used share of the budget: what is left of `tat` is scaled to the same number of requests.
UPDATE hosts SET
       tat = CASE WHEN tat > greatest(clock_timestamp(), last_slot_at)
                  THEN greatest(clock_timestamp(), last_slot_at) + (tat - greatest(clock_timestamp(), last_slot_at)) * (current_rate / %(current_rate)s::float8)
                  ELSE tat END,
       current_rate = %(current_rate)s, rate_changed_at = %(rate_changed_at)s, rate_reduced_at = %(rate_reduced_at)s,
       cooldown_until = %(cooldown_until)s, cooldown_reason = %(cooldown_reason)s, consecutive_throttles = %(consecutive_throttles)s,
       consecutive_errors = %(consecutive_errors)s, circuit = %(circuit)s, circuit_opened_at = %(circuit_opened_at)s, circuit_until = %(circuit_until)s,
       consecutive_opens = %(consecutive_opens)s, circuit_reason = %(circuit_reason)s, blocked_identities = %(blocked_identities)s,
       last_ok_at = %(last_ok_at)s, last_refused_at = %(last_refused_at)s, updated_at = clock_timestamp()
 WHERE host = %(host)s;

-- name: leases_of
-- Unexpired leases, without those of tasks that were recovered from a dead worker.
SELECT count(*) FROM identity_leases l
 WHERE l.host = %(host)s AND l.expires_at > clock_timestamp()
   AND NOT EXISTS (SELECT FROM task_live t WHERE t.id = l.task_id AND t.state <> 'a');

-- name: remove_events
DELETE FROM host_events WHERE host = %(host)s;

-- name: remove_proxy_scores
DELETE FROM proxy_scores WHERE host = %(host)s;

-- name: remove_profile_scores
DELETE FROM profile_scores WHERE host = %(host)s;

-- name: remove_host
DELETE FROM hosts WHERE host = %(host)s;

-- name: charge
-- Requests without a slot: the following slots are delayed accordingly.
UPDATE hosts SET tat = greatest(coalesce(tat, clock_timestamp()), clock_timestamp()) + make_interval(secs => %(times)s / current_rate) WHERE host = %(host)s;

-- name: add_event
INSERT INTO host_events (host, kind, reason, until, happened_at) VALUES (%(host)s, %(kind)s, %(reason)s, %(until)s, clock_timestamp());

-- name: prune_events
DELETE FROM host_events WHERE happened_at < %(before)s;

-- name: availability
-- Whether these hosts accept a new identity now: `code` is null if so, else the reason, with the remaining seconds.
-- A lease of a task that was recovered from a dead worker does not count: lease_identity deletes it.
-- `concurrency` is at most the number of proxies: if all of them are in use on the host, no other identity can start.
SELECT h.host, c.code, c.reason, c.wait, l.leases,
       CASE WHEN h.circuit = 'open' THEN 1 ELSE least(h.concurrency, l.leases + f.free) END AS concurrency,
       extract(epoch FROM greatest(h.tat - make_interval(secs => (h.burst - 1) / h.current_rate),
                                   h.last_slot_at + make_interval(secs => greatest(h.min_gap, coalesce(h.crawl_delay, 0))))
                          - clock_timestamp())::double precision AS next_turn
  FROM hosts h, host_block_reason(h, clock_timestamp()) c,
       LATERAL (SELECT array_agg(proxy_id) AS proxies, count(*) AS leases FROM identity_leases
                 WHERE host = h.host AND expires_at > clock_timestamp()
                   AND NOT EXISTS (SELECT FROM task_live t WHERE t.id = task_id AND t.state <> 'a')) l,
       LATERAL (SELECT count(*) AS free FROM (SELECT FROM proxies p
                 WHERE p.is_active AND p.id <> ALL (coalesce(l.proxies, '{}')) LIMIT h.concurrency) unused) f
 WHERE h.host = ANY (%(hosts)s::text[]);

-- name: robots
SELECT robots_status AS status, robots_body AS body,
       coalesce(extract(epoch FROM clock_timestamp() - robots_body_at), 0)::double precision AS age,
       coalesce(extract(epoch FROM robots_due_at - clock_timestamp()), 0)::double precision AS due_in
  FROM hosts WHERE host = %(host)s;

-- name: claim_robots
-- Of all processes that find it due, one may fetch it.
UPDATE hosts SET robots_claimed_until = clock_timestamp() + make_interval(secs => %(lease_seconds)s::double precision)
 WHERE host = %(host)s AND coalesce(robots_due_at <= clock_timestamp(), true) AND coalesce(robots_claimed_until <= clock_timestamp(), true)
RETURNING host;

-- name: release_robots
UPDATE hosts SET robots_claimed_until = NULL WHERE host = %(host)s;

-- name: lock_robots
SELECT robots_status AS status, robots_body AS body FROM hosts WHERE host = %(host)s FOR NO KEY UPDATE;

-- name: save_robots
-- A null body could not be read: the last one stays, with its crawl delay.
UPDATE hosts SET
       robots_checked_at = clock_timestamp(), robots_status = %(status)s::integer, robots_claimed_until = NULL,
       robots_body = coalesce(%(body)s::text, robots_body),
       robots_body_at = CASE WHEN %(body)s::text IS NULL THEN robots_body_at ELSE clock_timestamp() END,
       crawl_delay = CASE WHEN %(body)s::text IS NULL THEN crawl_delay ELSE %(crawl_delay)s::double precision END,
       robots_due_at = clock_timestamp() + make_interval(secs => %(due_in)s::double precision), updated_at = clock_timestamp()
 WHERE host = %(host)s RETURNING robots_due_at;

-- name: forget_robots
UPDATE hosts SET robots_checked_at = NULL, robots_status = NULL, robots_body = NULL, robots_body_at = NULL, robots_due_at = NULL, crawl_delay = NULL
 WHERE host = %(host)s AND (robots_due_at IS NOT NULL OR crawl_delay IS NOT NULL);
