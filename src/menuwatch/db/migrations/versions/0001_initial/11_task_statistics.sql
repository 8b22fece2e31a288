-- Statistics of finished tasks.

-- How many tasks ended on each day that is over: nothing is added to such a day any more, so that all of history is counted by reading a
-- few rows of each day and the rows of the last one or two. Days are in UTC, as partitions are. (Who writes into a day that is over by hand
-- removes its row in task_days: it is then counted again.)
CREATE TABLE task_days (
  day                      date PRIMARY KEY,
  counted_at               timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE task_day_counts (
  day                      date NOT NULL REFERENCES task_days ON DELETE CASCADE,
  role                     text NOT NULL,
  status                   text NOT NULL,
  platform                 text NOT NULL,
  n                        bigint NOT NULL,
  PRIMARY KEY (day, role, status, platform)
);

-- Workers that ended tasks on such a day: a search for one worker's tasks reads those days only. Ending a task costs nothing for it.
CREATE TABLE task_day_workers (
  worker_id                text NOT NULL,
  day                      date NOT NULL REFERENCES task_days ON DELETE CASCADE,
  PRIMARY KEY (worker_id, day)
);
CREATE INDEX task_day_workers_day ON task_day_workers (day);

-- The days that history has partitions of.
CREATE VIEW task_history_days AS
SELECT to_date(right(c.relname, 8), 'YYYYMMDD') AS day
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
 WHERE i.inhparent = 'task_history'::regclass AND NOT i.inhdetachpending AND c.relname ~ '^task_history_\d{8}$';

-- Counts the days that have been over for six hours (a task ends in a transaction of its own, which may take a while) and forgets those that
-- were dropped; says how many days it counted.
CREATE FUNCTION count_task_days() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  d date;
  counted integer := 0;
BEGIN
  DELETE FROM task_days t WHERE NOT EXISTS (SELECT FROM task_history_days h WHERE h.day = t.day);
  FOR d IN SELECT h.day FROM task_history_days h
            WHERE (h.day + 1)::timestamp AT TIME ZONE 'UTC' < now() - interval '6 hours' AND NOT EXISTS (SELECT FROM task_days t WHERE t.day = h.day)
            ORDER BY 1 LOOP
    INSERT INTO task_days (day) VALUES (d) ON CONFLICT DO NOTHING;
    CONTINUE WHEN NOT FOUND;
    INSERT INTO task_day_counts (day, role, status, platform, n)
      SELECT d, h.role, h.status, h.platform, count(*) FROM task_history h
       WHERE h.completed_at >= d::timestamp AT TIME ZONE 'UTC' AND h.completed_at < (d + 1)::timestamp AT TIME ZONE 'UTC' GROUP BY 2, 3, 4;
    INSERT INTO task_day_workers (worker_id, day)
      SELECT DISTINCT h.worker_id, d FROM task_history h
       WHERE h.completed_at >= d::timestamp AT TIME ZONE 'UTC' AND h.completed_at < (d + 1)::timestamp AT TIME ZONE 'UTC' AND h.worker_id IS NOT NULL;
    counted := counted + 1;
  END LOOP;
  RETURN counted;
END $$;

-- An id above those of all tasks that were enqueued before that moment. Ids are given in the order of enqueueing, but for transactions that
-- last: an hour is left for them.
CREATE FUNCTION task_id_bound(moment timestamptz) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
  low bigint := 0;
  high bigint;
  middle bigint;
  made timestamptz;
BEGIN
  SELECT last_value + 1 INTO high FROM task_ids;
  IF moment + interval '1 hour' >= now() THEN RETURN high; END IF;
  WHILE low < high LOOP
    middle := (low + high) / 2;
    SELECT x.created_at INTO made FROM (
      (SELECT h.id, h.created_at FROM task_history h WHERE h.id >= middle ORDER BY h.id LIMIT 1)
      UNION ALL
      (SELECT t.id, t.created_at FROM task_live t WHERE t.id >= middle ORDER BY t.id LIMIT 1)) x ORDER BY x.id LIMIT 1;
    IF made IS NULL OR made > moment + interval '1 hour' THEN high := middle; ELSE low := middle + 1; END IF;
  END LOOP;
  RETURN high;
END $$;

-- Failures that an operator muted: they count in no health check until then (null: until they are unmuted).
CREATE TABLE failure_mutes (
  cause                    text NOT NULL CHECK (cause <> ''),
  role                     text NOT NULL,
  platform                 text NOT NULL,
  reason                   text NOT NULL CHECK (length(reason) BETWEEN 1 AND 500),
  until                    timestamptz,
  muted_by                 text NOT NULL,
  muted_at                 timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (cause, role, platform)
);

-- What failed since a moment, by cause and unit: a store and a role, or without a store the role, the platform and the payload. The two crawls of a
-- store are one role here. `resolved_at` is the first success of the unit afterwards; `is_open` says that there was none, and that there
-- can be one: a store that is removed or not crawled any more is not open, nor one to resolve that discovery has resolved. `is_retried`: another task of the unit is ready or running.
CREATE FUNCTION failed_units(since timestamptz)
RETURNS TABLE (cause text, role text, platform text, dispensary_id integer, print text, n bigint, last_hour bigint, last_day bigint,
               first_at timestamptz, last_at timestamptz, resolved_at timestamptz, is_open boolean, is_retried boolean, is_muted boolean)
LANGUAGE sql STABLE AS $$
  SELECT u.*, r.at, r.at IS NULL AND (u.dispensary_id IS NULL OR EXISTS (
           SELECT FROM dispensaries d WHERE d.id = u.dispensary_id AND (d.crawl_enabled OR u.role = 'product_refresh')
              AND (u.role <> 'entry_point_discovery' OR d.platform_dispensary_id IS NULL))),
         CASE WHEN u.dispensary_id IS NULL
              THEN EXISTS (SELECT FROM live_tasks t WHERE t.role = u.role AND t.dispensary_id IS NULL AND t.wait_state IS DISTINCT FROM 'scheduled'
                              AND t.wait_state IS DISTINCT FROM 'blocked' AND md5(t.platform || t.payload::text) = u.print)
              ELSE EXISTS (SELECT FROM live_tasks t WHERE t.dispensary_id = u.dispensary_id AND t.state IN ('r', 'a') AND t.role = ANY (k.roles)
                              AND t.wait_state IS DISTINCT FROM 'blocked') END,
         EXISTS (SELECT FROM failure_mutes m WHERE m.cause = u.cause AND m.role = u.role AND m.platform = u.platform
                    AND (m.until IS NULL OR m.until > now()))
    FROM (
      SELECT h.cause, h.role, h.platform, h.dispensary_id, NULL AS print, count(*) AS n,
             count(*) FILTER (WHERE h.completed_at >= now() - interval '1 hour') AS last_hour,
             count(*) FILTER (WHERE h.completed_at >= now() - interval '24 hours') AS last_day,
             min(h.completed_at) AS first_at, max(h.completed_at) AS last_at
        FROM task_history h
       WHERE h.status = 'failed' AND h.completed_at >= since AND h.dispensary_id IS NOT NULL GROUP BY 1, 2, 3, 4
      UNION ALL
      -- The index of causes says which these are; the rows of the others are not read for their payload.
      SELECT h.cause, h.role, h.platform, NULL, md5(x.platform || x.payload::text), count(*),
             count(*) FILTER (WHERE h.completed_at >= now() - interval '1 hour'),
             count(*) FILTER (WHERE h.completed_at >= now() - interval '24 hours'), min(h.completed_at), max(h.completed_at)
        FROM (SELECT i.cause, i.role, i.platform, i.id, i.completed_at FROM task_history i
               WHERE i.status = 'failed' AND i.completed_at >= since AND i.dispensary_id IS NULL OFFSET 0) h
        JOIN task_history x ON x.id = h.id AND x.completed_at = h.completed_at
       GROUP BY 1, 2, 3, 5) u
   CROSS JOIN LATERAL (
      SELECT CASE WHEN u.role IN ('payload_fetch', 'product_discovery') THEN ARRAY['payload_fetch', 'product_discovery'] ELSE ARRAY[u.role] END AS roles) k
   CROSS JOIN LATERAL (
      SELECT CASE WHEN u.dispensary_id IS NULL
                  THEN (SELECT s.completed_at FROM task_history s
                         WHERE s.role = u.role AND s.completed_at > u.last_at AND s.status = 'completed' AND s.dispensary_id IS NULL
                           AND md5(s.platform || s.payload::text) = u.print ORDER BY s.completed_at LIMIT 1)
                  ELSE (SELECT s.completed_at FROM task_history s
                         WHERE s.dispensary_id = u.dispensary_id AND s.completed_at > u.last_at AND s.status = 'completed' AND s.role = ANY (k.roles)
                         ORDER BY s.completed_at LIMIT 1) END AS at OFFSET 0) r  -- OFFSET: looked up once, and not at each mention
$$;
