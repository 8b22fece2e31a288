-- The views for analysts, with their comments.

-- name: columns
SELECT k.relname AS view, obj_description(k.oid, 'pg_class') AS view_meaning, a.attname AS name,
       format_type(a.atttypid, a.atttypmod) AS type, col_description(k.oid, a.attnum) AS meaning
  FROM pg_class k JOIN pg_attribute a ON a.attrelid = k.oid AND a.attnum > 0 AND NOT a.attisdropped
 WHERE k.relnamespace = 'analyst'::regnamespace AND k.relkind = 'v'
 ORDER BY k.relname, a.attnum
