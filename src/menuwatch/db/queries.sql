-- Partitions of a table, and what holds the database back.

-- name: partitions
-- The parts of a partitioned table with the end of their range; `pending` where detaching one was begun and not ended.
SELECT c.oid::regclass::text AS name, i.inhdetachpending AS pending,
       (regexp_match(pg_get_expr(c.relpartbound, c.oid), 'TO \(''([^'']+)''\)'))[1]::timestamptz AS upper
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
 WHERE i.inhparent = %(parent)s::text::regclass
 ORDER BY upper, name;

-- name: condemned
-- Tables that were partitions until a process began to drop them.
SELECT c.oid::regclass::text
  FROM pg_class c JOIN pg_description d ON d.objoid = c.oid AND d.classoid = 'pg_class'::regclass AND d.objsubid = 0
 WHERE c.relkind = 'r' AND NOT c.relispartition AND d.description = %(mark)s::text
 ORDER BY 1;

-- name: partitioned_tables
-- Those of this schema that are not parts themselves.
SELECT c.oid::regclass::text FROM pg_class c
 WHERE c.relkind = 'p' AND NOT c.relispartition AND c.relnamespace = current_schema()::regnamespace ORDER BY 1;

-- name: horizon
-- Open transactions that keep dead rows from being removed, the oldest first: by a snapshot, by changes of their own, or prepared and
-- never ended. Those of other databases are no hindrance; vacuum's own never is.
SELECT h.pid, h.state, h.application, h.seconds
  FROM (
    SELECT a.pid, coalesce(a.state, 'unknown') AS state, coalesce(a.application_name, '') AS application,
           extract(epoch FROM clock_timestamp() - a.xact_start)::double precision AS seconds
      FROM pg_stat_activity a
     WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.xact_start IS NOT NULL
       AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL) AND a.backend_type <> 'autovacuum worker'
    UNION ALL
    SELECT NULL, 'prepared', p.gid, extract(epoch FROM clock_timestamp() - p.prepared)::double precision
      FROM pg_prepared_xacts p WHERE p.database = current_database()) h
 ORDER BY h.seconds DESC LIMIT 20;

-- name: now
SELECT clock_timestamp();
