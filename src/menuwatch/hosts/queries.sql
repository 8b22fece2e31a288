-- The hosts: what they allow, what they said.

-- name: add_host
INSERT INTO hosts (host, rate, burst, concurrency, min_gap, pace)
VALUES (%(host)s, %(rate)s, %(burst)s, %(concurrency)s, %(min_gap)s, %(rate)s) ON CONFLICT DO NOTHING;

-- name: lock_courses
SELECT host, rate, pace, paced_at, slowed_at, cooldown_until, cooldown_reason, throttles, troubles, circuit, circuit_opened_at, circuit_until,
       circuit_opens, circuit_reason, refused, last_ok_at, last_refused_at, clock_timestamp() AS now,
       (SELECT count(*) FROM proxies WHERE is_active) AS proxies
  FROM hosts WHERE host = ANY (%(hosts)s::text[]) ORDER BY host FOR NO KEY UPDATE;

-- name: save_course
-- Of the budget as much is used up after the pace has changed as before: what is left of `tat` is so many requests, whatever the pace.
UPDATE hosts SET
       tat = CASE WHEN tat > greatest(clock_timestamp(), last_slot_at)
                  THEN greatest(clock_timestamp(), last_slot_at) + (tat - greatest(clock_timestamp(), last_slot_at)) * (pace / %(pace)s::float8) ELSE tat END,
       pace = %(pace)s, paced_at = %(paced_at)s, slowed_at = %(slowed_at)s, cooldown_until = %(cooldown_until)s,
       cooldown_reason = %(cooldown_reason)s, throttles = %(throttles)s, troubles = %(troubles)s, circuit = %(circuit)s, circuit_opened_at = %(circuit_opened_at)s,
       circuit_until = %(circuit_until)s, circuit_opens = %(circuit_opens)s, circuit_reason = %(circuit_reason)s, refused = %(refused)s,
       last_ok_at = %(last_ok_at)s, last_refused_at = %(last_refused_at)s, updated_at = clock_timestamp()
 WHERE host = %(host)s;

-- name: leases_of
-- Those that did not lapse, nor were left behind by a task that was taken back.
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
-- Requests that were made beyond those that were given a moment: the next ones come later by as much.
UPDATE hosts SET tat = greatest(coalesce(tat, clock_timestamp()), clock_timestamp()) + make_interval(secs => %(times)s / pace) WHERE host = %(host)s;

-- name: add_event
INSERT INTO host_events (host, kind, reason, until, happened_at) VALUES (%(host)s, %(kind)s, %(reason)s, %(until)s, clock_timestamp());

-- name: list_hosts
SELECT h.host, h.rate, h.burst, h.concurrency, h.min_gap, h.paused_at, h.paused_reason, h.pace, h.cooldown_until, h.cooldown_reason, h.throttles,
       h.circuit, h.circuit_opened_at, h.circuit_until, h.circuit_opens, h.circuit_reason, jsonb_array_length(h.refused) AS refused,
       h.last_ok_at, h.last_refused_at, h.robots_checked_at, h.robots_status, h.crawl_delay,
       (SELECT count(*) FROM identity_leases l WHERE l.host = h.host AND l.expires_at > clock_timestamp())::integer AS leases,
       h.created_at, h.updated_at
  FROM hosts h WHERE %(host)s::text IS NULL OR h.host = %(host)s ORDER BY h.host;

-- name: set_limits
-- A lower rate takes the present pace down with it, and `tat` as in save_course; a higher one is grown into.
UPDATE hosts SET tat = CASE WHEN tat > greatest(clock_timestamp(), last_slot_at)
                            THEN greatest(clock_timestamp(), last_slot_at)
                                 + (tat - greatest(clock_timestamp(), last_slot_at)) * (pace / least(pace, coalesce(%(rate)s, rate))) ELSE tat END,
       rate = coalesce(%(rate)s, rate), burst = coalesce(%(burst)s, burst), concurrency = coalesce(%(concurrency)s, concurrency),
       min_gap = coalesce(%(min_gap)s, min_gap), pace = least(pace, coalesce(%(rate)s, rate)), updated_at = clock_timestamp()
 WHERE host = %(host)s;

-- name: pause_host
UPDATE hosts SET paused_at = coalesce(paused_at, clock_timestamp()), paused_reason = %(reason)s, updated_at = clock_timestamp() WHERE host = %(host)s;

-- name: resume_host
UPDATE hosts SET paused_at = NULL, paused_reason = NULL, updated_at = clock_timestamp() WHERE host = %(host)s;

-- name: reset_host
UPDATE hosts SET pace = rate, paced_at = clock_timestamp(), slowed_at = NULL, tat = NULL, last_slot_at = NULL, cooldown_until = NULL, cooldown_reason = NULL,
       throttles = 0, troubles = 0, circuit = 'closed', circuit_opened_at = NULL, circuit_until = NULL, circuit_opens = 0, circuit_reason = NULL, refused = '[]',
       updated_at = clock_timestamp()
 WHERE host = %(host)s;

-- name: events
SELECT kind, reason, until, happened_at FROM host_events WHERE host = %(host)s ORDER BY happened_at DESC, id DESC LIMIT %(limit)s;

-- name: prune_events
DELETE FROM host_events WHERE happened_at < %(before)s;

-- name: outlook
-- Whether somebody could begin to talk to these hosts now: `code` null where yes, else why not, and for how many seconds yet.
-- A lease of a task that was taken back from a dead worker does not count: lease_identity clears it away, if only somebody comes so far.
-- `concurrency` is no more than there are proxies for: where all are in use on the host, nobody else can begin either.
SELECT h.host, c.code, c.reason, c.wait, l.leases,
       CASE WHEN h.circuit = 'open' THEN 1 ELSE least(h.concurrency, l.leases + f.free) END AS concurrency,
       extract(epoch FROM greatest(h.tat - make_interval(secs => (h.burst - 1) / h.pace),
                                   h.last_slot_at + make_interval(secs => greatest(h.min_gap, coalesce(h.crawl_delay, 0))))
                          - clock_timestamp())::double precision AS next_turn
  FROM hosts h, host_closed(h, clock_timestamp()) c,
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
-- Of all who find it due one may ask for it.
UPDATE hosts SET robots_claimed_until = clock_timestamp() + make_interval(secs => %(lasting)s::double precision)
 WHERE host = %(host)s AND coalesce(robots_due_at <= clock_timestamp(), true) AND coalesce(robots_claimed_until <= clock_timestamp(), true)
RETURNING host;

-- name: release_robots
UPDATE hosts SET robots_claimed_until = NULL WHERE host = %(host)s;

-- name: lock_robots
SELECT robots_status AS status, robots_body AS body FROM hosts WHERE host = %(host)s FOR NO KEY UPDATE;

-- name: save_robots
-- A body that is null could not be read: the last one stays, with the delay that it asks for.
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
