-- Figures of visitors: of whole days in UTC, from `since` on and before `until`.

-- name: days
-- Every day, including those without visitors.
SELECT d::date AS day, coalesce(sum(v.views), 0)::bigint AS views, coalesce(sum(v.arrivals), 0)::bigint AS daily_uniques,
       coalesce(sum(v.views) FILTER (WHERE v.country = ''), 0)::bigint AS views_without_place
  FROM generate_series(%(since)s::date, %(until)s::date - 1, interval '1 day') d LEFT JOIN visitor_days v ON v.day = d::date
 GROUP BY d ORDER BY d;

-- name: kinds
SELECT kind, sum(views)::bigint AS views, sum(uniques)::bigint AS uniques_of_days, sum(arrivals)::bigint AS arrivals_of_days
  FROM visitor_days WHERE day >= %(since)s::date AND day < %(until)s::date GROUP BY kind ORDER BY 2 DESC, 1;

-- name: places
-- By country, region or city; what is not known of a place is null, and those come among the others.
SELECT nullif(country, '') AS country, CASE WHEN %(by)s::text <> 'country' THEN nullif(region, '') END AS region,
       CASE WHEN %(by)s::text = 'city' THEN nullif(city, '') END AS city,
       sum(views)::bigint AS views, sum(arrivals)::bigint AS uniques_of_days
  FROM visitor_days
 WHERE day >= %(since)s::date AND day < %(until)s::date
   AND (%(country)s::text IS NULL OR country = %(country)s) AND (%(region)s::text IS NULL OR region = %(region)s)
 GROUP BY 1, 2, 3 ORDER BY 4 DESC, 1 NULLS LAST, 2 NULLS LAST, 3 NULLS LAST LIMIT %(limit)s;

-- name: pages
SELECT kind, page, sum(views)::bigint AS views, sum(uniques)::bigint AS uniques_of_days
  FROM visitor_pages
 WHERE day >= %(since)s::date AND day < %(until)s::date AND (%(kind)s::text IS NULL OR kind = %(kind)s)
 GROUP BY kind, page ORDER BY 3 DESC, 1, 2 LIMIT %(limit)s;
