-- Proxies as the dashboard lists them.

-- name: proxy_ids
-- By number. Five faults or refusals in a row take a proxy out; from `failing` on an active one is said to be failing.
SELECT p.id FROM proxies p
 WHERE p.id > %(after)s
   AND (%(status)s::text IS NULL
        OR CASE %(status)s WHEN 'active' THEN p.is_active
                           WHEN 'inactive' THEN NOT p.is_active AND p.disabled_at IS NULL
                           WHEN 'disabled' THEN p.disabled_at IS NOT NULL
                           ELSE p.is_active AND greatest(p.failure_count, p.consecutive_403_count) >= %(failing)s END)
   AND (%(q)s::text IS NULL
        OR concat_ws(' ', p.protocol || '://' || coalesce(p.username || '@', '') || p.host || ':' || p.port, p.city, p.state, p.country) ILIKE %(q)s)
 ORDER BY p.id LIMIT %(limit)s;

-- name: proxy_scores
-- How often each was let in and refused, at any host: experiences that halve in `half_life` seconds.
SELECT s.proxy_id, sum(s.good * w.weight) AS good, sum(s.bad * w.weight) AS bad
  FROM proxy_scores s
 CROSS JOIN LATERAL (SELECT 0.5 ^ (greatest(extract(epoch FROM now() - s.as_of), 0) / %(half_life)s::double precision) AS weight) w
 WHERE s.proxy_id = ANY (%(ids)s::integer[]) GROUP BY s.proxy_id;

-- name: proxy_hosts
-- The same of one proxy, for each host.
SELECT s.host, s.good, s.bad, s.as_of FROM proxy_scores s WHERE s.proxy_id = %(id)s ORDER BY s.host LIMIT 50;
