-- Crawl intervals of `menuwatch demo --keep`.

-- name: states_of_stores
SELECT DISTINCT state FROM dispensaries WHERE state IS NOT NULL ORDER BY state;

-- name: schedule_of_state
INSERT INTO task_schedules (name, role, platform, interval_hours, state_code, next_run_at)
VALUES (%(name)s, 'payload_fetch', 'dutchie', %(hours)s, %(state)s, %(first)s) ON CONFLICT (name) DO NOTHING;

-- name: crawl_every
UPDATE dispensaries SET crawl_interval_hours = %(hours)s;
