-- Keeps locations and their links in step with stores and licences (matching/locations/engine.py).

-- name: take_lock
SELECT pg_try_advisory_lock(hashtext('store matching')) AS locked;

-- name: wait_for_lock
SELECT pg_advisory_lock(hashtext('store matching'));

-- name: free_lock
SELECT pg_advisory_unlock(hashtext('store matching'));

-- name: fingerprint
-- Changes with everything that the links are made from, but not with crawls.
SELECT (SELECT md5(coalesce(string_agg(md5(row(d.id, d.platform, d.name, d.address, d.city, d.state, d.zipcode, d.latitude, d.longitude, d.phone,
                                               d.enterprise_id, d.crawl_enabled)::text), '' ORDER BY d.id), '')) FROM dispensaries d)
    || (SELECT md5(coalesce(string_agg(md5(row(l.id, l.holder, l.trade_name, l.kind, l.address, l.city, l.zipcode, l.latitude, l.longitude, l.phone,
                                               l.expires_on < current_date, l.status, l.gone_at)::text), '' ORDER BY l.id), '')) FROM licences l)
    || (SELECT count(*) || ' ' || coalesce(max(linked_at)::text, '') FROM location_links)
    || (SELECT count(*) || ' ' || coalesce(max(decided_at)::text, '') FROM location_refusals) AS fingerprint;

-- name: menus
SELECT id, platform, name, address, city, state, zipcode, latitude, longitude, phone, enterprise_id, crawl_enabled FROM dispensaries ORDER BY id;

-- name: licences
SELECT id, state, holder, trade_name, kind, address, city, zipcode, latitude, longitude, phone,
       gone_at IS NOT NULL OR coalesce(expires_on < current_date, false) OR coalesce(status ~* %(ended)s, false) AS ended
  FROM licences ORDER BY id;

-- name: links
SELECT location_id, dispensary_id, licence_id, decided_by, confidence, reasons FROM location_links;

-- name: refusals
SELECT location_id, dispensary_id, licence_id FROM location_refusals;

-- name: locations
SELECT id, name, chain, address, city, state, zipcode, latitude, longitude, phone FROM locations WHERE merged_into IS NULL;

-- name: new_location
INSERT INTO locations (name) VALUES (%(name)s) RETURNING id;

-- name: set_location
UPDATE locations SET name = %(name)s, chain = %(chain)s, address = %(address)s, city = %(city)s, state = %(state)s, zipcode = %(zipcode)s,
       latitude = %(latitude)s, longitude = %(longitude)s, phone = %(phone)s, changed_at = now()
 WHERE id = %(id)s;

-- name: put_menu_link
INSERT INTO location_links (location_id, dispensary_id, confidence, reasons) VALUES (%(location_id)s, %(id)s, %(confidence)s, %(reasons)s)
    ON CONFLICT (dispensary_id) DO UPDATE SET location_id = EXCLUDED.location_id, linked_at = now(),
       confidence = CASE WHEN location_links.decided_by IS NULL THEN EXCLUDED.confidence ELSE 1 END,
       reasons = CASE WHEN location_links.decided_by IS NULL THEN EXCLUDED.reasons ELSE location_links.reasons END;

-- name: put_licence_link
INSERT INTO location_links (location_id, licence_id, confidence, reasons) VALUES (%(location_id)s, %(id)s, %(confidence)s, %(reasons)s)
    ON CONFLICT (licence_id) DO UPDATE SET location_id = EXCLUDED.location_id, linked_at = now(),
       confidence = CASE WHEN location_links.decided_by IS NULL THEN EXCLUDED.confidence ELSE 1 END,
       reasons = CASE WHEN location_links.decided_by IS NULL THEN EXCLUDED.reasons ELSE location_links.reasons END;

-- name: unlink_licences
DELETE FROM location_links WHERE licence_id = ANY (%(ids)s::integer[]) AND decided_by IS NULL;

-- name: redirect
-- Redirects lead straight to the location that has the records.
UPDATE locations SET merged_into = %(into)s, changed_at = now() WHERE (id = %(id)s OR merged_into = %(id)s) AND id <> %(into)s;

-- name: move_refusals
UPDATE location_refusals r SET location_id = %(into)s WHERE r.location_id = %(id)s
   AND NOT EXISTS (SELECT FROM location_refusals o WHERE o.location_id = %(into)s
                     AND (o.dispensary_id, o.licence_id) IS NOT DISTINCT FROM (r.dispensary_id, r.licence_id));

-- name: put_event
INSERT INTO location_events (location_id, kind, before, after, other_id, made_by)
VALUES (%(location_id)s, %(kind)s, %(before)s, %(after)s, %(other_id)s, %(made_by)s);
