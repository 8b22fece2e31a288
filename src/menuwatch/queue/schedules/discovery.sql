-- What crawling the stores of each state costs.

-- name: stores
-- Known stores by state, with their crawls per day.
SELECT d.state, count(*) AS stores, coalesce(sum(24 / d.crawl_interval_hours) FILTER (WHERE d.crawl_enabled), 0)::double precision AS crawls
  FROM dispensaries d WHERE d.platform = %(platform)s AND d.state IS NOT NULL GROUP BY d.state;

-- name: pages
-- Mean number of pages of the newest complete menus; each page is a request.
SELECT avg(p.page_count)::double precision AS pages
  FROM (SELECT page_count FROM raw_crawl_payloads
         WHERE platform = %(platform)s AND status = 'ok' AND page_count > 0 ORDER BY fetched_at DESC, id DESC LIMIT 200) p;
