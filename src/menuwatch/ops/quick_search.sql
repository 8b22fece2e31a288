-- Objects by number or name, for the search at the top of the dashboard.

-- name: by_number
-- What has this number.
SELECT n.kind, n.id, n.name, n.detail, true AS exact FROM (
SELECT 'task' AS kind, t.id::text AS id, 'Task ' || t.id AS name, concat_ws(' · ', t.role, d.name, t.status) AS detail, 1 AS rank
  FROM worker_tasks t LEFT JOIN dispensaries d ON d.id = t.dispensary_id WHERE t.id = %(number)s
UNION ALL
SELECT 'payload', p.id::text, 'Payload ' || p.id, concat_ws(' · ', d.name, p.status), 2
  FROM raw_crawl_payloads p LEFT JOIN dispensaries d ON d.id = p.dispensary_id WHERE p.id = %(number)s
UNION ALL
SELECT 'store', d.id::text, d.name, concat_ws(' · ', 'store ' || d.id, d.city, d.state), 3 FROM dispensaries d WHERE d.id = %(small)s::integer
UNION ALL
SELECT 'proxy', x.id::text, 'Proxy ' || x.id, x.host || ':' || x.port, 4 FROM proxies x WHERE x.id = %(small)s::integer
) n ORDER BY n.rank;

-- name: by_words
-- What contains every word, of each kind up to `most`: names that begin with the text first, then those with a word that does.
WITH found AS (
  SELECT 'store' AS kind, d.id::text AS id, d.name, concat_ws(' · ', d.city, d.state, d.platform, d.slug) AS detail, d.slug AS also, NULL AS state
    FROM dispensaries d
   WHERE lower(concat_ws(' ', d.name, d.slug, d.city)) LIKE ALL (%(patterns)s::text[])
  UNION ALL
  SELECT 'host', h.host, h.host, CASE c.code WHEN 'circuit' THEN 'circuit open' WHEN 'cooling' THEN 'cooling down' ELSE c.code END, NULL,
         CASE WHEN c.code = 'paused' THEN 'paused' ELSE 'active' END
    FROM hosts h CROSS JOIN LATERAL host_block_reason(h, clock_timestamp()) c WHERE h.host LIKE ALL (%(patterns)s::text[])
  UNION ALL
  SELECT 'worker', w.worker_id, w.friendly_name, concat_ws(' · ', w.worker_id, w.pod, s.state), w.worker_id, s.state
    FROM worker_registry w CROSS JOIN LATERAL (
      SELECT CASE WHEN w.status = 'stopped' OR worker_alive(w.status, w.last_heartbeat_at) THEN w.status ELSE 'silent' END AS state) s
   WHERE lower(concat_ws(' ', w.friendly_name, w.worker_id, w.pod)) LIKE ALL (%(patterns)s::text[])
  UNION ALL
  SELECT 'proxy', x.id::text, x.protocol || '://' || x.host || ':' || x.port,
         concat_ws(' · ', 'proxy ' || x.id, x.city, x.state, CASE WHEN x.is_active THEN 'active' ELSE 'inactive' END), x.host,
         CASE WHEN x.disabled_at IS NULL THEN 'enabled' ELSE 'disabled' END
    FROM proxies x
   WHERE lower(concat_ws(' ', x.host || ':' || x.port, x.city, x.state)) LIKE ALL (%(patterns)s::text[])
  UNION ALL
  SELECT 'schedule', s.id::text, s.name, concat_ws(' · ', s.role, s.platform, CASE WHEN s.enabled THEN 'enabled' ELSE 'disabled' END), NULL, NULL
    FROM task_schedules s WHERE lower(s.name) LIKE ALL (%(patterns)s::text[])
  UNION ALL
  SELECT 'user', u.id::text, u.name, u.role, NULL, NULL
    FROM users u WHERE %(accounts)s AND lower(u.name) LIKE ALL (%(patterns)s::text[])),
ranked AS (
  SELECT f.*, CASE WHEN lower(f.name) = %(text)s OR f.also = %(text)s THEN 0 WHEN lower(f.name) LIKE %(first)s THEN 1
                   WHEN lower(f.name) LIKE %(inner)s THEN 2 ELSE 3 END AS rank
    FROM found f)
SELECT r.kind, r.id, r.name, r.detail, r.state, r.rank = 0 AS exact
  FROM (SELECT *, row_number() OVER (PARTITION BY kind ORDER BY rank, lower(name), id) AS place FROM ranked) r
 WHERE r.place <= %(most)s
 ORDER BY r.rank, r.place, r.kind;

-- name: similar_stores
-- Stores whose name may be meant although no name contains what was typed: with one error in a word, one of its halves is right.
SELECT 'store' AS kind, d.id::text AS id, d.name, concat_ws(' · ', d.city, d.state, d.platform, d.slug) AS detail
  FROM dispensaries d WHERE lower(concat_ws(' ', d.name, d.slug, d.city)) LIKE ALL (%(whole)s::text[])
   AND lower(d.name) LIKE ANY (%(halves)s::text[])
 ORDER BY d.id LIMIT 2000;
