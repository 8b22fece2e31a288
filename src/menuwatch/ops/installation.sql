-- What an installation is and how large it has grown: from catalogs and small samples, so that it costs the same at any size.

-- name: server
SELECT current_setting('server_version') AS postgres, (SELECT version_num FROM alembic_version) AS revision, pg_database_size(current_database()) AS bytes,
       pg_postmaster_start_time() AS started_at, current_setting('max_connections')::integer AS connections_most,
       (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database())::integer AS connections;

-- name: tables
-- The largest, with their indexes; a table in partitions is one. `rows` is the estimate of the last ANALYZE.
SELECT coalesce(p.inhparent, c.oid)::regclass::text AS name, sum(pg_total_relation_size(c.oid))::bigint AS bytes,
       sum(pg_indexes_size(c.oid))::bigint AS index_bytes, sum(greatest(c.reltuples, 0))::bigint AS rows,
       count(p.inhparent)::integer AS partitions, min(c.relname) FILTER (WHERE p.inhparent IS NOT NULL) AS first_partition,
       max(c.relname) FILTER (WHERE p.inhparent IS NOT NULL) AS last_partition
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_inherits p ON p.inhrelid = c.oid
 WHERE c.relkind = 'r' AND n.nspname = current_schema()
 GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT %(limit)s;

-- name: files
-- About how many files there are and how large: the estimate of rows, times the mean of the newest thousand.
SELECT (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'raw_crawl_payloads'::regclass) AS payloads,
       (SELECT avg(s.bytes)::double precision FROM (SELECT bytes FROM raw_crawl_payloads ORDER BY fetched_at DESC, id DESC LIMIT 1000) s) AS payload_mean,
       (SELECT count(*) FROM (SELECT 1 FROM raw_crawl_payloads LIMIT 1000) s) AS payloads_seen,
       (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'images'::regclass) AS images,
       (SELECT avg(s.bytes)::double precision FROM (SELECT bytes FROM images LIMIT 1000) s) AS image_mean,
       (SELECT count(*) FROM (SELECT 1 FROM images LIMIT 1000) s) AS images_seen;

-- name: maintenance
SELECT job, succeeded_at, attempted_at, error, extract(epoch FROM duration)::double precision AS seconds FROM maintenance_runs ORDER BY job;

-- name: versions
-- Of workers that are alive.
SELECT version, count(*)::integer AS workers, array_agg(DISTINCT coalesce(pod, host) ORDER BY coalesce(pod, host)) AS pods
  FROM worker_registry WHERE worker_alive(status, last_heartbeat_at)
 GROUP BY version ORDER BY version NULLS LAST LIMIT 20;
