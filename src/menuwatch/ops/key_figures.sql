-- Key figures of the catalog and the network. Each read is bounded by a day of one table, through an index on time.

-- name: now
SELECT now() AS at,
       count(*) FILTER (WHERE is_active) AS active, count(*) FILTER (WHERE disabled_at IS NULL) AS usable FROM proxies;

-- name: payload_hours
SELECT date_trunc('hour', p.fetched_at, 'UTC') AS hour, count(*) AS n, sum(p.bytes)::bigint AS bytes
  FROM raw_crawl_payloads p WHERE p.fetched_at >= %(since)s::timestamptz AND p.fetched_at <= %(until)s::timestamptz GROUP BY 1;

-- name: change_hours
SELECT date_trunc('hour', c.crawled_at, 'UTC') AS hour, sum(c.price_changes)::bigint AS n
  FROM store_crawls c WHERE c.crawled_at >= %(since)s::timestamptz AND c.crawled_at <= %(until)s::timestamptz GROUP BY 1;

-- name: between
SELECT (SELECT count(*) FROM raw_crawl_payloads p WHERE p.fetched_at >= %(since)s::timestamptz AND p.fetched_at <= %(until)s::timestamptz) AS payloads,
       (SELECT coalesce(sum(c.price_changes), 0)::bigint FROM store_crawls c
         WHERE c.crawled_at >= %(since)s AND c.crawled_at <= %(until)s) AS price_changes;
