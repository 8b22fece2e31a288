-- Figures of `menuwatch demo`, and crawl intervals of `--keep`.

-- name: platform_figures
-- The platforms with the most stores first.
SELECT d.platform, count(*) AS stores, coalesce(sum(p.products), 0)::bigint AS products
  FROM dispensaries d LEFT JOIN (SELECT dispensary_id, count(*) AS products FROM store_products GROUP BY 1) p ON p.dispensary_id = d.id
 GROUP BY d.platform ORDER BY stores DESC, d.platform;

-- name: payloads
SELECT count(*) FROM raw_crawl_payloads;

-- name: crawlable
SELECT id, platform FROM dispensaries WHERE crawl_enabled AND platform_dispensary_id IS NOT NULL ORDER BY id;

-- name: crawl_groups
-- The states of each platform; one group without a state for a platform that does not say where all of its stores are.
SELECT DISTINCT platform, CASE WHEN bool_or(state IS NULL) OVER (PARTITION BY platform) THEN NULL ELSE state END AS state
  FROM dispensaries ORDER BY 1, 2;

-- name: schedule_of_group
INSERT INTO task_schedules (name, role, platform, interval_hours, state_code, next_run_at)
VALUES (%(name)s, 'payload_fetch', %(platform)s, %(hours)s, %(state)s, %(first)s) ON CONFLICT (name) DO NOTHING;

-- name: crawl_every
UPDATE dispensaries SET crawl_interval_hours = %(hours)s;
