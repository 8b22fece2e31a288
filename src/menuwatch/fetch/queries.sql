-- Requests, scores of proxies and browsers, leases and slots.

-- name: insert_attempts
-- All attempts in one statement, each column as an array.
INSERT INTO fetch_attempts (task_id, dispensary_id, host, proxy_id, profile, verdict, blame, reaction, status, rotated, waited_ms, bytes, elapsed_ms,
                            error, attempted_at, task_attempt)
SELECT * FROM unnest(
       %(task_id)s::bigint[], %(dispensary_id)s::integer[], %(host)s::text[], %(proxy_id)s::integer[], %(profile)s::text[],
       %(verdict)s::text[], %(blame)s::text[], %(reaction)s::text[], %(status)s::integer[], %(rotated)s::boolean[], %(waited_ms)s::float8[],
       %(bytes)s::bigint[], %(elapsed_ms)s::float8[], %(error)s::text[], %(attempted_at)s::timestamptz[], %(task_attempt)s::integer[]);

-- name: add_totals
-- In the order of the key, so that concurrent calls wait for each other without a deadlock.
INSERT INTO fetch_totals AS t (host, verdict, requests, rotations, bytes, waited_ms, elapsed_ms)
SELECT a.host, a.verdict, count(*), count(*) FILTER (WHERE a.rotated), sum(a.bytes), sum(a.waited_ms), sum(a.elapsed_ms)
  FROM unnest(%(host)s::text[], %(verdict)s::text[], %(rotated)s::boolean[], %(bytes)s::bigint[], %(waited_ms)s::float8[], %(elapsed_ms)s::float8[])
       a(host, verdict, rotated, bytes, waited_ms, elapsed_ms)
 GROUP BY a.host, a.verdict ORDER BY a.host, a.verdict
ON CONFLICT (host, verdict) DO UPDATE SET
       requests = t.requests + EXCLUDED.requests, rotations = t.rotations + EXCLUDED.rotations, bytes = t.bytes + EXCLUDED.bytes,
       waited_ms = t.waited_ms + EXCLUDED.waited_ms, elapsed_ms = t.elapsed_ms + EXCLUDED.elapsed_ms;

-- name: ensure_attempts
-- The partition of an attempt that was made at this time.
SELECT ensure_fetch_attempts_partition(%(instant)s::timestamptz);

-- name: transaction
-- Id of the current transaction.
SELECT pg_current_xact_id()::text;

-- name: fate
-- Status of a transaction: committed, aborted, in progress.
SELECT pg_xact_status(%(number)s::text::xid8);

-- name: prepare_attempts
-- The partitions of today and the days ahead.
SELECT count(*) FILTER (WHERE ensure_fetch_attempts_partition(now() + make_interval(days => d))) FROM generate_series(0, %(days)s::integer) d;

-- name: list_attempts
-- Newest first. Never prepared: planned for each call, so that a filter that is not set costs nothing.
SELECT a.id, a.attempted_at, a.task_id, a.task_attempt, a.dispensary_id, a.host, a.proxy_id, a.profile, a.verdict, a.blame, a.reaction, a.rotated, a.status,
       a.waited_ms, a.elapsed_ms, a.bytes, a.error, p.protocol AS proxy_protocol, p.host AS proxy_host, p.port AS proxy_port, p.username AS proxy_user
  FROM fetch_attempts a LEFT JOIN proxies p ON p.id = a.proxy_id
 WHERE (%(task_id)s::bigint IS NULL OR a.task_id = %(task_id)s)
   AND (%(dispensary_id)s::integer IS NULL OR a.dispensary_id = %(dispensary_id)s)
   AND (%(host)s::text IS NULL OR a.host = %(host)s)
   AND (%(proxy_id)s::integer IS NULL OR a.proxy_id = %(proxy_id)s)
   AND (%(verdicts)s::text[] IS NULL OR a.verdict = ANY (%(verdicts)s))
   AND (%(since)s::timestamptz IS NULL OR a.attempted_at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR a.attempted_at < %(until)s)
   AND (%(after_at)s::timestamptz IS NULL OR (a.attempted_at, a.id) < (%(after_at)s, %(after_id)s::bigint))
 ORDER BY a.attempted_at DESC, a.id DESC LIMIT %(limit)s;

-- name: traffic
SELECT coalesce(sum(requests), 0)::bigint AS requests,
       coalesce(sum(requests) FILTER (WHERE verdict IN ('blocked', 'challenge')), 0)::bigint AS blocked,
       coalesce(sum(rotations), 0)::bigint AS rotations, coalesce(sum(bytes), 0)::bigint AS bytes
  FROM fetch_totals;

-- name: candidates
-- Active proxies with their scores at this host.
SELECT p.*, s.good, s.bad, s.as_of
  FROM proxies p LEFT JOIN proxy_scores s ON s.proxy_id = p.id AND s.host = %(host)s
 WHERE p.is_active ORDER BY p.id;

-- name: profile_scores
SELECT profile, good, bad, as_of FROM profile_scores WHERE host = %(host)s;

-- name: lease
SELECT * FROM lease_identity(%(host)s, %(ranked)s::integer[], %(task)s::bigint, %(lease_seconds)s, 1, %(max_wait)s, 0, %(release_lease_id)s::bigint);

-- name: renew
UPDATE identity_leases SET expires_at = clock_timestamp() + make_interval(secs => %(lease_seconds)s::double precision)
 WHERE id = %(lease)s::bigint RETURNING id;

-- name: acquire_slots
SELECT * FROM acquire_slots(%(host)s, %(count)s, %(max_wait)s, %(window)s);

-- name: host_block_reason
SELECT c.code, c.reason, c.wait FROM hosts h, host_block_reason(h, clock_timestamp()) c WHERE h.host = %(host)s AND c.code IS NOT NULL;

-- name: acquire_adhoc_slot
-- A slot for a request outside of tasks. None while an open circuit is being probed by one identity of the active proxies.
SELECT * FROM acquire_slots(%(host)s, CASE WHEN EXISTS (SELECT FROM hosts WHERE host = %(host)s AND circuit = 'open' AND circuit_until <= clock_timestamp())
                                         AND EXISTS (SELECT FROM proxies WHERE is_active) THEN 0 ELSE 1 END, %(max_wait)s, 0);

-- name: end_leases
-- Rows that another session is deleting (expired leases) are skipped: it may be waiting for locks held here.
DELETE FROM identity_leases WHERE id IN (SELECT l.id FROM identity_leases l WHERE l.id = ANY (%(ids)s::bigint[]) FOR UPDATE SKIP LOCKED);

-- name: add_proxy_scores
-- A score halves every `half_life` seconds. A proxy that was removed meanwhile has none.
INSERT INTO proxy_scores AS s (host, proxy_id, good, bad, as_of)
SELECT n.host, n.proxy_id, n.good, n.bad, clock_timestamp()
  FROM unnest(%(hosts)s::text[], %(proxies)s::integer[], %(good)s::float8[], %(bad)s::float8[]) n(host, proxy_id, good, bad)
  JOIN proxies p ON p.id = n.proxy_id ORDER BY n.host, n.proxy_id
ON CONFLICT (host, proxy_id) DO UPDATE SET
       good = s.good * 0.5 ^ (greatest(extract(epoch FROM EXCLUDED.as_of - s.as_of), 0) / %(half_life)s::float8) + EXCLUDED.good,
       bad = s.bad * 0.5 ^ (greatest(extract(epoch FROM EXCLUDED.as_of - s.as_of), 0) / %(half_life)s::float8) + EXCLUDED.bad,
       as_of = EXCLUDED.as_of;

-- name: add_profile_scores
INSERT INTO profile_scores AS s (host, profile, good, bad, as_of)
SELECT n.host, n.profile, n.good, n.bad, clock_timestamp()
  FROM unnest(%(hosts)s::text[], %(profiles)s::text[], %(good)s::float8[], %(bad)s::float8[]) n(host, profile, good, bad) ORDER BY n.host, n.profile
ON CONFLICT (host, profile) DO UPDATE SET
       good = s.good * 0.5 ^ (greatest(extract(epoch FROM EXCLUDED.as_of - s.as_of), 0) / %(half_life)s::float8) + EXCLUDED.good,
       bad = s.bad * 0.5 ^ (greatest(extract(epoch FROM EXCLUDED.as_of - s.as_of), 0) / %(half_life)s::float8) + EXCLUDED.bad,
       as_of = EXCLUDED.as_of;
