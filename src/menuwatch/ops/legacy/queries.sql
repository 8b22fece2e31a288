-- What of the former system is in this database. Statements on its own tables are put together in code: where these lie, and which
-- columns they have, differs from one installation to the next.

-- name: tables
-- Tables of these names with their columns; where there are several of one name the first counts: that of the usual schema, then `legacy`.
SELECT c.relname AS name, n.nspname AS schema, has_table_privilege(c.oid, 'SELECT') AS readable,
       has_table_privilege(c.oid, 'UPDATE') AS writable,
       array_agg(a.attname::text ORDER BY a.attnum) AS columns
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
 WHERE c.relname = ANY (%(names)s::text[]) AND c.relkind IN ('r', 'p') AND n.nspname !~ '^(pg_|information_schema$)'
   AND (%(schema)s::text IS NULL OR n.nspname = %(schema)s)
   AND has_schema_privilege(n.oid, 'USAGE')
 GROUP BY c.oid, c.relname, n.nspname
 ORDER BY n.nspname = current_schema() DESC, n.nspname = 'legacy' DESC, n.nspname;

-- name: resync_stores
-- Stores that can be crawled, and whether a crawl of theirs waits or is under way.
SELECT d.id, d.platform,
       EXISTS (SELECT FROM worker_tasks t WHERE t.dispensary_id = d.id AND t.role = 'payload_fetch'
                  AND t.status IN ('pending', 'claimed', 'running')) AS waiting
  FROM dispensaries d
 WHERE d.crawl_enabled AND d.platform_dispensary_id IS NOT NULL AND (%(state)s::text IS NULL OR upper(d.state) = %(state)s)
 ORDER BY d.id;

-- name: any_stores
SELECT EXISTS (SELECT FROM dispensaries WHERE %(state)s::text IS NULL OR upper(state) = %(state)s);
