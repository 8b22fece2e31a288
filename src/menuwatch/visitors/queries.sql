-- Visitors of the public site.

-- name: offer_salt
-- The first caller of the day sets it; the salts of later ones are discarded.
INSERT INTO visitor_salts (day, salt) VALUES (%(day)s, %(salt)s) ON CONFLICT DO NOTHING;

-- name: salt_of
SELECT salt FROM visitor_salts WHERE day = %(day)s;

-- name: add_marks
-- Those that were not there yet. In one order, so that two servers never wait for each other.
INSERT INTO visitor_marks (day, mark)
SELECT day, mark FROM unnest(%(days)s::date[], %(marks)s::bytea[]) AS m(day, mark) GROUP BY day, mark ORDER BY day, mark
ON CONFLICT DO NOTHING RETURNING day, mark;

-- name: add_views
INSERT INTO visitor_days AS d (day, country, region, city, kind, views, uniques, arrivals)
SELECT * FROM unnest(%(days)s::date[], %(countries)s::text[], %(regions)s::text[], %(cities)s::text[], %(kinds)s::text[], %(views)s::bigint[],
                     %(uniques)s::integer[], %(arrivals)s::integer[]) AS n(day, country, region, city, kind, views, uniques, arrivals)
 ORDER BY day, country, region, city, kind
ON CONFLICT (day, country, region, city, kind) DO UPDATE
   SET views = d.views + excluded.views, uniques = d.uniques + excluded.uniques, arrivals = d.arrivals + excluded.arrivals;

-- name: add_page_views
INSERT INTO visitor_pages AS p (day, kind, page, views, uniques)
SELECT * FROM unnest(%(days)s::date[], %(kinds)s::text[], %(pages)s::text[], %(views)s::bigint[], %(uniques)s::integer[])
           AS n(day, kind, page, views, uniques)
 ORDER BY day, kind, page
ON CONFLICT (day, kind, page) DO UPDATE SET views = p.views + excluded.views, uniques = p.uniques + excluded.uniques;

-- name: forget_salts
-- Their marks go with them.
DELETE FROM visitor_salts WHERE day < %(before)s;

-- name: forget_pages
DELETE FROM visitor_pages WHERE day < %(before)s;
