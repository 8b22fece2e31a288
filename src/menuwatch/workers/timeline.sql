-- What workers did in some hours, and what happened meanwhile.

-- name: ended_bars
-- The newest that ended in this time; days before `since` are not read. By role, as the index is: so many rows of each are read at most,
-- and those of other workers are left out then. There is always a row: `read_since` is when the oldest of them ended if there may be
-- older ones.
WITH newest AS MATERIALIZED (
  SELECT h.* FROM unnest(task_roles(NULL)) r(role) CROSS JOIN LATERAL (
    SELECT t.id, t.role, t.dispensary_id, t.status, t.worker_id, t.started_at AS start, t.completed_at AS "end"
      FROM task_history t
     WHERE t.role = r.role AND t.completed_at >= %(since)s::timestamptz AND t.completed_at < %(until)s::timestamptz
     ORDER BY t.completed_at DESC LIMIT %(read)s::bigint) h
   ORDER BY "end" DESC LIMIT %(read)s::bigint)
SELECT b.*, n.read_since
  FROM (SELECT CASE WHEN count(*) = %(read)s::bigint THEN min("end") END AS read_since FROM newest) n
  LEFT JOIN (SELECT * FROM newest
              WHERE start IS NOT NULL AND worker_id IS NOT NULL
                AND (%(workers)s::text[] IS NULL OR worker_id = ANY (%(workers)s))
              ORDER BY "end" DESC, id DESC LIMIT %(limit)s) b ON true
 ORDER BY b."end" DESC, b.id DESC;

-- name: crossing_bars
-- Those that began before the end of a time that is past, and ended within the hour after it.
SELECT h.* FROM unnest(task_roles(NULL)) r(role) CROSS JOIN LATERAL (
  SELECT t.id, t.role, t.dispensary_id, t.status, t.worker_id, t.started_at AS start, t.completed_at AS "end"
    FROM task_history t
   WHERE t.role = r.role AND t.completed_at >= %(until)s::timestamptz AND t.completed_at < %(until)s::timestamptz + interval '1 hour'
     AND t.started_at < %(until)s::timestamptz AND t.worker_id IS NOT NULL
     AND (%(workers)s::text[] IS NULL OR t.worker_id = ANY (%(workers)s))) h
 ORDER BY h."end" DESC LIMIT %(limit)s;

-- name: open_bars
-- What is worked on now. A task shows as begun from its first heartbeat on; until then its claim stands for its start.
SELECT t.id, t.role, t.dispensary_id,
       live_task_status(t.state, t.claimed_at, t.started_at, t.last_heartbeat_at, (SELECT stale_before())) AS status,
       t.worker_id, coalesce(t.started_at, t.claimed_at) AS start, NULL::timestamptz AS "end"
  FROM task_live t
 WHERE t.state = 'a' AND coalesce(t.started_at, t.claimed_at) < %(until)s::timestamptz
   AND (%(workers)s::text[] IS NULL OR t.worker_id = ANY (%(workers)s))
 ORDER BY t.id LIMIT %(limit)s;

-- name: workers_of_pod
SELECT worker_id FROM worker_registry WHERE pod = %(pod)s::text;

-- name: names_of_workers
SELECT worker_id, friendly_name, pod, status, started_at, last_heartbeat_at FROM worker_registry WHERE worker_id = ANY (%(ids)s::text[]);

-- name: events
-- Newest first. What is kept of a worker are its last start and its stop.
(SELECT e.happened_at AS at, e.kind, e.host AS name, NULL AS worker_id, e.reason
   FROM host_events e
  WHERE e.happened_at >= %(since)s::timestamptz AND e.happened_at < %(until)s::timestamptz AND e.kind <> 'robots'
  ORDER BY e.happened_at DESC, e.id DESC LIMIT %(limit)s::bigint)
UNION ALL
(SELECT w.at, w.kind, concat_ws('/', w.pod, w.friendly_name), w.worker_id, NULL
   FROM (SELECT g.*, m.* FROM worker_registry g, LATERAL (
           VALUES ('started', g.started_at), ('stopped', CASE WHEN g.status = 'stopped' THEN g.last_heartbeat_at END)) m(kind, at)
         ) w
  WHERE w.at >= %(since)s::timestamptz AND w.at < %(until)s::timestamptz AND (%(pod)s::text IS NULL OR w.pod = %(pod)s)
  ORDER BY w.at DESC, w.worker_id LIMIT %(limit)s::bigint)
 ORDER BY at DESC, name LIMIT %(limit)s::bigint;
