-- Failed tasks by what they failed of (error_fingerprint), their role and their platform; failed_units() says what is mended.

-- name: failure_groups
-- The last failure is the example. In its kind the host keeps its name, which error_template() takes for a number where it has digits.
-- `last_good_at` is the last success of the store that failed first, before it did.
SELECT g.cause, g.role, g.platform, p.host, g.count, g.stores, g.last_hour, g.last_day, g.first_at, g.last_at, g.status, g.open, g.resolved_at,
       l.at AS last_good_at, a.affected, e.id AS example_id, e.error_message AS example, y.id AS payload_id,
       CASE WHEN p.host IS NULL THEN error_template(e.error_message)
            ELSE replace(error_template(replace(e.error_message, p.host, E'\x01')), E'\x01', p.host) END AS kind,
       CASE WHEN g.status = 'muted' THEN jsonb_build_object('reason', m.reason, 'until', m.until, 'muted_by', m.muted_by, 'muted_at', m.muted_at) END AS mute
  FROM (
    SELECT u.cause, u.role, u.platform, sum(u.n)::bigint AS count, count(u.dispensary_id) AS stores, sum(u.last_hour)::bigint AS last_hour,
           sum(u.last_day)::bigint AS last_day, min(u.first_at) AS first_at, max(u.last_at) AS last_at,
           count(*) FILTER (WHERE u.is_open) AS open, max(u.resolved_at) AS resolved_at,
           CASE WHEN bool_or(u.is_muted) THEN 'muted' WHEN bool_or(u.is_open) THEN 'open' ELSE 'resolved' END AS status,
           (array_agg(u.dispensary_id ORDER BY u.first_at))[1] AS first_store,
           (array_agg(jsonb_build_object('dispensary_id', u.dispensary_id, 'failures', u.n, 'last_at', u.last_at, 'resolved_at', u.resolved_at,
                                         'is_open', u.is_open) ORDER BY u.is_open DESC, u.last_at DESC)
              FILTER (WHERE u.dispensary_id IS NOT NULL))[1:%(shown)s] AS some
      FROM failed_units(%(since)s::timestamptz) u
     WHERE (%(roles)s::text[] IS NULL OR u.role = ANY (%(roles)s))
       AND (%(cause)s::text IS NULL OR u.cause = %(cause)s)
     GROUP BY u.cause, u.role, u.platform) g
  LEFT JOIN failure_mutes m ON m.cause = g.cause AND m.role = g.role AND m.platform = g.platform
 CROSS JOIN LATERAL (
    SELECT CASE WHEN g.role IN ('store_discovery', 'entry_point_discovery', 'product_discovery', 'payload_fetch')
                THEN s.platform_hosts -> g.platform ->> 0 END AS host FROM queue_settings s) p
 CROSS JOIN LATERAL (
    SELECT x.id, x.error_message, x.dispensary_id, x.created_at FROM task_history x
     WHERE x.cause = g.cause AND x.status = 'failed' AND x.completed_at = g.last_at AND x.role = g.role AND x.platform = g.platform
     ORDER BY x.id DESC LIMIT 1) e
  LEFT JOIN LATERAL (
    SELECT r.id FROM raw_crawl_payloads r
     WHERE r.dispensary_id = e.dispensary_id AND r.fetched_at >= e.created_at AND r.task_id = e.id ORDER BY r.fetched_at DESC LIMIT 1) y ON true
  LEFT JOIN LATERAL (
    SELECT s.completed_at AS at FROM task_history s
     WHERE s.dispensary_id = g.first_store AND s.completed_at < g.first_at AND s.status = 'completed'
       AND (s.role = g.role OR (s.role = 'payload_fetch' AND g.role = 'product_discovery')) ORDER BY s.completed_at DESC LIMIT 1) l ON true
 CROSS JOIN LATERAL (
    SELECT coalesce(jsonb_agg(o.one || jsonb_build_object('name', d.name) ORDER BY o.place), '[]') AS affected
      FROM unnest(g.some) WITH ORDINALITY o(one, place) LEFT JOIN dispensaries d ON d.id = (o.one ->> 'dispensary_id')::integer) a
 WHERE %(status)s::text IS NULL OR g.status = %(status)s
 ORDER BY array_position(ARRAY['open', 'muted', 'resolved'], g.status), g.count DESC, g.cause, g.role, g.platform LIMIT %(limit)s;

-- name: open_causes
-- How many of these groups are open: what the navigation shows on every page.
SELECT count(*) AS n FROM (
  SELECT FROM failed_units(now() - %(length)s::interval) u
   GROUP BY u.cause, u.role, u.platform HAVING bool_or(u.is_open) AND NOT bool_or(u.is_muted) LIMIT %(limit)s) g;

-- name: failures_by_time
-- Of these causes, how many failed in each stretch of time.
SELECT h.cause, h.role, h.platform, date_bin(%(step)s::interval, h.completed_at, %(since)s::timestamptz) AS start, count(*) AS n
  FROM task_history h
 WHERE h.status = 'failed' AND h.completed_at >= %(since)s AND h.cause = ANY (%(causes)s::text[])
 GROUP BY 1, 2, 3, 4;

-- name: open_failures
-- What failed in the last hour and is neither mended, nor tried again now, nor muted: how many units, and of how many causes.
SELECT count(DISTINCT (u.role, u.dispensary_id, u.print)) AS tasks, count(DISTINCT (u.cause, u.role, u.platform)) AS causes
  FROM failed_units(now() - interval '1 hour') u WHERE u.is_open AND NOT u.is_retried AND NOT u.is_muted;

-- name: has_failed
SELECT EXISTS (SELECT FROM task_history h WHERE h.cause = %(cause)s AND h.role = %(role)s AND h.platform = %(platform)s AND h.status = 'failed') AS found;

-- name: mute
INSERT INTO failure_mutes (cause, role, platform, reason, until, muted_by)
VALUES (%(cause)s, %(role)s, %(platform)s, %(reason)s, %(until)s, %(by)s)
    ON CONFLICT (cause, role, platform) DO UPDATE SET reason = excluded.reason, until = excluded.until, muted_by = excluded.muted_by, muted_at = now()
RETURNING reason, until, muted_by, muted_at;

-- name: unmute
DELETE FROM failure_mutes WHERE cause = %(cause)s AND role = %(role)s AND platform = %(platform)s
RETURNING reason, until, muted_by, muted_at;
