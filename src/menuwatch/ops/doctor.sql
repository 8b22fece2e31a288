-- What the doctor asks the database.

-- name: server
SELECT current_setting('server_version') AS version, (SELECT version_num FROM alembic_version) AS revision;

-- name: failing_jobs
SELECT array_agg(job ORDER BY job) AS jobs, error FROM maintenance_runs WHERE error IS NOT NULL GROUP BY error ORDER BY 1;
