-- Lists of locations and licences, decisions of people, and the import of registers.

-- piece: location_columns
l.id, l.name, l.chain, l.address, l.city, l.state, l.zipcode, l.latitude, l.longitude, l.phone,
CASE WHEN m.current AND x.ended THEN 'licence_ended' WHEN m.current THEN 'open' WHEN x.ended THEN 'closed' ELSE 'no_menu' END AS status,
m.menus, x.licences, m.platforms, m.preferred_store_id, l.created_at, l.changed_at

-- piece: location_parts
-- A menu is current if it was read in the last week and has products. Licences count as ended if all of them are.
CROSS JOIN LATERAL (
  SELECT count(*) AS menus, coalesce(array_agg(DISTINCT d.platform ORDER BY d.platform), '{}') AS platforms,
         coalesce(bool_or(d.crawl_enabled AND d.product_count > 0 AND d.last_crawled_at > now() - interval '7 days'), false) AS current,
         (array_agg(d.id ORDER BY d.crawl_enabled DESC, d.product_count > 0 DESC NULLS LAST, d.last_crawled_at DESC NULLS LAST, d.id))[1] AS preferred_store_id
    FROM location_links k JOIN dispensaries d ON d.id = k.dispensary_id WHERE k.location_id = l.id) m
CROSS JOIN LATERAL (
  SELECT count(*) AS licences, coalesce(bool_and({licence_ended}), false) AS ended
    FROM location_links k JOIN licences n ON n.id = k.licence_id WHERE k.location_id = l.id) x

-- name: list_locations
SELECT * FROM (
  SELECT {location_columns} FROM locations l {location_parts}
   WHERE l.merged_into IS NULL AND (m.menus > 0 OR x.licences > 0)
     AND (%(id)s::integer IS NULL OR l.id = %(id)s)
     AND (%(states)s::text[] IS NULL OR l.state = ANY (%(states)s))
     AND (%(q)s::text IS NULL OR l.name ILIKE %(q)s OR l.city ILIKE %(q)s OR l.address ILIKE %(q)s OR l.chain ILIKE %(q)s)
     AND (%(meters)s::double precision IS NULL
          OR distance_meters(%(latitude)s::double precision, %(longitude)s::double precision, l.latitude, l.longitude) <= %(meters)s)
     AND (%(updated_since)s::timestamptz IS NULL OR l.changed_at >= %(updated_since)s)
     AND (%(several)s::boolean IS NULL OR (m.menus > 1) = %(several)s)
     AND (%(after)s::integer IS NULL OR l.id > %(after)s)) t
 WHERE %(status)s::text IS NULL OR t.status = %(status)s
 ORDER BY t.id LIMIT %(limit)s;

-- name: find_location
-- Where the number leads to.
SELECT l.id, l.merged_into FROM locations l WHERE l.id = %(id)s;

-- name: location_of
SELECT location_id, decided_by, linked_at FROM location_links
 WHERE dispensary_id IS NOT DISTINCT FROM %(store_id)s::integer AND licence_id IS NOT DISTINCT FROM %(licence_id)s::integer;

-- name: menus_of
SELECT d.id AS store_id, d.name, d.platform, d.address, d.city, h.status AS freshness, d.last_crawled_at, d.product_count, d.crawl_enabled,
       m.preferred, k.confidence, k.reasons, k.decided_by
  FROM location_links k JOIN dispensaries d ON d.id = k.dispensary_id CROSS JOIN LATERAL store_freshness(d) h
  JOIN location_menus m ON m.dispensary_id = d.id AND m.location_id = k.location_id
 WHERE k.location_id = %(id)s ORDER BY m.preferred DESC, d.id;

-- piece: licence_columns
n.id, n.state, n.number, n.holder, n.trade_name, n.kind, n.status, n.operating, n.address, n.city, n.zipcode, n.phone, n.issued_on, n.expires_on,
{licence_ended} AS ended, n.imported_at, n.gone_at, k.location_id, k.confidence, k.reasons, k.decided_by

-- piece: licence_ended
-- The last piece: others contain it.
(n.gone_at IS NOT NULL OR coalesce(n.expires_on < current_date, false) OR coalesce(n.status ~* %(ended)s, false))

-- name: licences_of
SELECT {licence_columns} FROM location_links k JOIN licences n ON n.id = k.licence_id WHERE k.location_id = %(id)s ORDER BY n.number;

-- name: list_licences
SELECT {licence_columns} FROM licences n LEFT JOIN location_links k ON k.licence_id = n.id
 WHERE (%(states)s::text[] IS NULL OR n.state = ANY (%(states)s))
   AND (%(linked)s::boolean IS NULL OR (k.location_id IS NOT NULL) = %(linked)s)
   AND (%(ended_only)s::boolean IS NULL OR {licence_ended} = %(ended_only)s)
   AND (%(q)s::text IS NULL OR n.number ILIKE %(q)s OR n.holder ILIKE %(q)s OR n.trade_name ILIKE %(q)s OR n.city ILIKE %(q)s)
   AND (%(after)s::integer IS NULL OR n.id > %(after)s)
 ORDER BY n.id LIMIT %(limit)s;

-- name: events_of
SELECT at, kind, before, after, other_id, made_by FROM location_events WHERE location_id = %(id)s OR other_id = %(id)s ORDER BY at DESC, id DESC LIMIT 50;

-- name: nearby
-- Other locations within about 250 m or with the same telephone number.
SELECT o.id, o.name, o.address, o.city,
       CASE WHEN o.latitude IS NOT NULL AND l.latitude IS NOT NULL
            THEN round(111195 * sqrt((o.latitude - l.latitude) ^ 2 + ((o.longitude - l.longitude) * cos(radians(l.latitude))) ^ 2))::integer END AS metres,
       coalesce(right(regexp_replace(o.phone, '\D', '', 'g'), 10) = right(regexp_replace(l.phone, '\D', '', 'g'), 10), false) AS same_phone
  FROM locations l JOIN locations o ON o.id <> l.id AND o.merged_into IS NULL AND o.state IS NOT DISTINCT FROM l.state
   AND (abs(o.latitude - l.latitude) < 0.0025 AND abs(o.longitude - l.longitude) < 0.003
        OR length(l.phone) > 9 AND right(regexp_replace(o.phone, '\D', '', 'g'), 10) = right(regexp_replace(l.phone, '\D', '', 'g'), 10))
   AND EXISTS (SELECT FROM location_links k WHERE k.location_id = o.id)
 WHERE l.id = %(id)s ORDER BY metres NULLS LAST, o.id LIMIT 10;

-- name: lock_locations
SELECT id, name, merged_into FROM locations WHERE id = ANY (%(ids)s::integer[]) ORDER BY id FOR UPDATE;

-- name: store_name
SELECT name FROM dispensaries WHERE id = %(id)s;

-- name: licence_name
SELECT number || ' (' || holder || ')' AS name FROM licences WHERE id = %(id)s;

-- name: refusal
SELECT decided_by, decided_at FROM location_refusals
 WHERE location_id = %(location_id)s AND dispensary_id IS NOT DISTINCT FROM %(store_id)s::integer AND licence_id IS NOT DISTINCT FROM %(licence_id)s::integer;

-- name: refusal_between
-- A person's word that a record of one location is not of the other one.
SELECT r.location_id, r.dispensary_id AS store_id, r.licence_id, r.decided_by, r.decided_at
  FROM location_refusals r JOIN location_links k
    ON k.dispensary_id = r.dispensary_id OR k.licence_id = r.licence_id
 WHERE (r.location_id, k.location_id) IN ((%(a)s, %(b)s), (%(b)s, %(a)s)) LIMIT 1;

-- name: decide_menu
INSERT INTO location_links (location_id, dispensary_id, confidence, reasons, decided_by)
VALUES (%(location_id)s, %(subject_id)s, 1, '[{"code":"person"}]', %(by)s)
    ON CONFLICT (dispensary_id) DO UPDATE SET location_id = EXCLUDED.location_id, confidence = 1, reasons = EXCLUDED.reasons,
       decided_by = EXCLUDED.decided_by, linked_at = now();

-- name: decide_licence
INSERT INTO location_links (location_id, licence_id, confidence, reasons, decided_by)
VALUES (%(location_id)s, %(subject_id)s, 1, '[{"code":"person"}]', %(by)s)
    ON CONFLICT (licence_id) DO UPDATE SET location_id = EXCLUDED.location_id, confidence = 1, reasons = EXCLUDED.reasons,
       decided_by = EXCLUDED.decided_by, linked_at = now();

-- name: refuse
INSERT INTO location_refusals (location_id, dispensary_id, licence_id, decided_by) VALUES (%(location_id)s, %(store_id)s, %(licence_id)s, %(by)s)
    ON CONFLICT DO NOTHING;

-- name: other_menus
SELECT count(*) AS n FROM location_links WHERE location_id = %(id)s AND dispensary_id IS NOT NULL AND dispensary_id IS DISTINCT FROM %(store_id)s::integer;

-- name: copy_location
-- A location of its own for a menu that was taken out of another one.
INSERT INTO locations (name, address, city, state, zipcode, latitude, longitude, phone)
SELECT name, address, city, state, zipcode, latitude, longitude, phone FROM dispensaries WHERE id = %(store_id)s RETURNING id;

-- name: move_link
UPDATE location_links SET location_id = %(into)s, confidence = 1, reasons = '[]', decided_by = NULL, linked_at = now() WHERE dispensary_id = %(store_id)s;

-- name: drop_licence_link
DELETE FROM location_links WHERE licence_id = %(licence_id)s;

-- name: move_links
UPDATE location_links SET location_id = %(into)s, decided_by = coalesce(decided_by, %(by)s), confidence = 1, reasons = '[{"code":"person"}]', linked_at = now()
 WHERE location_id = %(id)s;

-- name: is_empty
SELECT NOT EXISTS (SELECT FROM location_links WHERE location_id = %(id)s) AS empty;

-- name: release
UPDATE location_links SET decided_by = NULL, linked_at = now()
 WHERE dispensary_id IS NOT DISTINCT FROM %(store_id)s::integer AND licence_id IS NOT DISTINCT FROM %(licence_id)s::integer AND decided_by IS NOT NULL;

-- name: release_refusals
DELETE FROM location_refusals WHERE dispensary_id IS NOT DISTINCT FROM %(store_id)s::integer AND licence_id IS NOT DISTINCT FROM %(licence_id)s::integer;

-- name: known_licences
SELECT id, number, gone_at FROM licences WHERE state = %(state)s;

-- name: lock_register
SELECT pg_advisory_xact_lock(hashtext('licences of ' || %(state)s));

-- name: put_licences
-- `changed` is false for a row that says what is stored already.
WITH n AS MATERIALIZED (
  SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) n(number text, holder text, trade_name text, kind text, status text, operating boolean,
         address text, city text, zipcode text, latitude double precision, longitude double precision, phone text, issued_on date, expires_on date)
), o AS (
  SELECT l.number, row(l.holder, l.trade_name, l.kind, l.status, l.operating, l.address, l.city, l.zipcode, l.latitude, l.longitude, l.phone,
                       l.issued_on, l.expires_on, l.gone_at IS NULL) AS was FROM licences l WHERE l.state = %(state)s
), p AS (
  INSERT INTO licences (state, number, holder, trade_name, kind, status, operating, address, city, zipcode, latitude, longitude, phone, issued_on, expires_on)
  SELECT %(state)s, number, holder, trade_name, kind, status, operating, address, city, zipcode, latitude, longitude, phone, issued_on, expires_on FROM n
      ON CONFLICT (state, number) DO UPDATE SET holder = EXCLUDED.holder, trade_name = EXCLUDED.trade_name, kind = EXCLUDED.kind, status = EXCLUDED.status,
         operating = EXCLUDED.operating, address = EXCLUDED.address, city = EXCLUDED.city, zipcode = EXCLUDED.zipcode, latitude = EXCLUDED.latitude,
         longitude = EXCLUDED.longitude, phone = EXCLUDED.phone, issued_on = EXCLUDED.issued_on, expires_on = EXCLUDED.expires_on,
         imported_at = now(), gone_at = NULL
  RETURNING number, xmax = 0 AS inserted,
            row(holder, trade_name, kind, status, operating, address, city, zipcode, latitude, longitude, phone, issued_on, expires_on, true) AS now
)
SELECT count(*) FILTER (WHERE p.inserted) AS added,
       count(*) FILTER (WHERE NOT p.inserted AND p.now IS DISTINCT FROM o.was) AS updated,
       count(*) FILTER (WHERE NOT p.inserted AND p.now IS NOT DISTINCT FROM o.was) AS unchanged
  FROM p LEFT JOIN o USING (number);

-- name: mark_gone
UPDATE licences SET gone_at = now() WHERE id = ANY (%(ids)s::integer[]) AND gone_at IS NULL;
