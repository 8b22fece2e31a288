-- Values that the shell completes (completion.py): those that begin with a text.

-- name: complete_stores
SELECT slug AS value FROM dispensaries WHERE starts_with(slug, %(text)s) ORDER BY slug LIMIT 100;

-- name: complete_workers
SELECT DISTINCT friendly_name AS value FROM worker_registry
WHERE status <> 'stopped' AND starts_with(friendly_name, %(text)s) ORDER BY 1 LIMIT 100;

-- name: complete_rules
SELECT name AS value FROM alert_rules WHERE starts_with(name, %(text)s) ORDER BY name LIMIT 100;

-- name: complete_hosts
SELECT host AS value FROM hosts WHERE starts_with(host, %(text)s) ORDER BY host LIMIT 100;

-- name: complete_schedules
SELECT name AS value FROM task_schedules WHERE starts_with(name, %(text)s) ORDER BY name LIMIT 100;

-- name: complete_users
SELECT name AS value FROM users WHERE starts_with(name, %(text)s) ORDER BY name LIMIT 100;
