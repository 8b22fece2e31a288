-- Database roles of analysts.

-- name: role
SELECT rolname AS name, shobj_description(oid, 'pg_authid') AS comment FROM pg_roles WHERE rolname = %(name)s

-- name: roles
SELECT r.rolname AS name,
       (SELECT extract(epoch FROM split_part(c, '=', 2)::interval)::integer FROM unnest(s.setconfig) c WHERE c LIKE 'statement_timeout=%%') AS timeout_seconds,
       (SELECT count(*)::integer FROM pg_stat_activity a WHERE a.usename = r.rolname) AS connections
  FROM pg_roles r LEFT JOIN pg_db_role_setting s ON s.setrole = r.oid AND s.setdatabase = 0
 WHERE shobj_description(r.oid, 'pg_authid') = %(mark)s
 ORDER BY r.rolname

-- name: own_schema
SELECT current_schema()

-- name: end_sessions
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %(name)s
