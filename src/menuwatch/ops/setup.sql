-- What a new installation still lacks.

-- name: steps
SELECT EXISTS (SELECT FROM proxies WHERE is_active) AS proxy, EXISTS (SELECT FROM dispensaries) AS store, EXISTS (SELECT FROM store_crawls) AS crawl,
       EXISTS (SELECT FROM alert_rules) AS alert, EXISTS (SELECT FROM backups) AS backup;
