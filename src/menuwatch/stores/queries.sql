-- Stores and where they were found.

-- piece: store_columns
id, platform, platform_dispensary_id, slug, name, menu_url, address, city, state, country, zipcode, latitude, longitude,
timezone, phone, is_recreational, is_medical, crawl_enabled, crawl_interval_hours, shown,
ARRAY(SELECT jsonb_object_keys(details_by_person) ORDER BY 1) AS details_by_person, first_crawled_at, last_crawled_at, last_payload_id, last_attempt_at, last_error, product_count, created_at, updated_at,
(SELECT l.location_id FROM location_links l WHERE l.dispensary_id = id) AS location_id

-- name: get_store
SELECT {store_columns} FROM dispensaries WHERE id = %(id)s;

-- name: lock_store
-- A transaction that applies a menu locks this row, so one menu of a store is applied at a time.
SELECT {store_columns} FROM dispensaries WHERE id = %(id)s FOR NO KEY UPDATE;

-- name: find_store
-- By slug, number or platform's id, whichever the text is; `rank` says which, and those of one platform come together.
SELECT {store_columns}, CASE WHEN d.slug = %(text)s THEN 1 WHEN d.id = %(id)s::integer THEN 2 ELSE 3 END AS rank
  FROM dispensaries d
 WHERE (d.slug = %(text)s OR d.platform_dispensary_id = %(text)s OR d.id = %(id)s::integer)
   AND (%(platform)s::text IS NULL OR d.platform = %(platform)s)
 ORDER BY rank, d.id;

-- name: find_store_by_name
-- By name, or slug in any case, as no index has it: there are some thousand stores.
SELECT {store_columns} FROM dispensaries d
 WHERE (lower(d.name) = lower(%(text)s) OR lower(d.slug) = lower(%(text)s)) AND (%(platform)s::text IS NULL OR d.platform = %(platform)s)
 ORDER BY d.id LIMIT %(limit)s;

-- name: similar_stores
-- Stores whose name or slug shares more than half of its three-letter parts with the text, or whose name contains it.
SELECT s.id, s.name, s.slug
  FROM (SELECT d.id, d.name, d.slug, t.parts, greatest(
                 (SELECT count(*) FROM unnest(trigrams(lower(d.name))) x WHERE x = ANY (t.parts)) / greatest(length(d.name) - 2, cardinality(t.parts), 1)::float,
                 (SELECT count(*) FROM unnest(trigrams(lower(d.slug))) x WHERE x = ANY (t.parts)) / greatest(length(d.slug) - 2, cardinality(t.parts), 1)::float,
                 CASE WHEN length(%(text)s::text) > 2 AND strpos(lower(d.name), lower(%(text)s::text)) > 0 THEN 0.6 END) AS shared
          FROM dispensaries d CROSS JOIN (SELECT trigrams(lower(left(%(text)s::text, 200))) AS parts) t) s
 WHERE s.shared > 0.5 ORDER BY s.shared DESC, s.id LIMIT 3;

-- name: by_platform_id
SELECT {store_columns} FROM dispensaries WHERE platform = %(platform)s AND platform_dispensary_id = %(platform_dispensary_id)s;

-- name: count_by_platform
SELECT platform, count(*) AS stores FROM dispensaries GROUP BY platform;

-- name: crawlable_stores
SELECT id FROM dispensaries WHERE crawl_enabled AND platform_dispensary_id IS NOT NULL ORDER BY id;

-- name: insert_by_url
INSERT INTO dispensaries (platform, slug, name, name_raw, menu_url)
VALUES (%(platform)s, %(slug)s, %(name)s, %(slug)s, %(menu_url)s)
RETURNING {store_columns};

-- name: update_details
-- What the platform says of a store that is known; a value it no longer gives is kept, as is a state where it gives none that is known.
UPDATE dispensaries SET
       platform_dispensary_id = %(platform_dispensary_id)s, slug = %(slug)s, name = %(name)s, name_raw = %(name_raw)s,
       menu_url = coalesce(menu_url, %(menu_url)s), address = coalesce(%(address)s, address), city = coalesce(%(city)s, city),
       state = coalesce(%(state_code)s, state, %(state)s), country = coalesce(%(country)s, country), zipcode = coalesce(%(zipcode)s, zipcode),
       latitude = coalesce(%(latitude)s, latitude), longitude = coalesce(%(longitude)s, longitude),
       timezone = coalesce(%(timezone)s, timezone), phone = coalesce(%(phone)s, phone),
       is_recreational = coalesce(%(is_recreational)s, is_recreational), is_medical = coalesce(%(is_medical)s, is_medical),
       enterprise_id = coalesce(%(enterprise_id)s, enterprise_id), last_error = NULL, updated_at = now()
 WHERE id = %(id)s;

-- name: keep_details
-- Values set by a person override the platform's.
UPDATE dispensaries d SET name = coalesce(p.name, d.name), address = coalesce(p.address, d.address), city = coalesce(p.city, d.city),
       state = coalesce(p.state, d.state), zipcode = coalesce(p.zipcode, d.zipcode), latitude = coalesce(p.latitude, d.latitude),
       longitude = coalesce(p.longitude, d.longitude), timezone = coalesce(p.timezone, d.timezone), updated_at = now()
  FROM (SELECT o.id, r.* FROM dispensaries o CROSS JOIN jsonb_to_record(o.details_by_person)
               r(name text, address text, city text, state text, zipcode text, latitude double precision, longitude double precision, timezone text)
         WHERE o.id = %(id)s AND o.details_by_person <> '{}') p
 WHERE d.id = p.id;

-- name: set_details
-- A name that is given up is the platform's again; other details are when it next names them. The site then looks again where the store is.
WITH dirty AS (INSERT INTO storefront_dirty_stores VALUES (%(id)s))
UPDATE dispensaries SET details_by_person = jsonb_strip_nulls(details_by_person || %(details)s::jsonb),
       name = CASE WHEN %(details)s::jsonb -> 'name' = 'null' THEN CASE WHEN name_raw = slug THEN %(slug_name)s ELSE name_raw END ELSE name END,
       updated_at = now()
 WHERE id = %(id)s;

-- name: set_shown
UPDATE dispensaries SET shown = %(shown)s, updated_at = now() WHERE id = %(id)s;

-- name: adopt
-- A store that was added by its address alone turns out to be this one, unless the platform's id is another row's already.
UPDATE dispensaries d SET platform_dispensary_id = %(platform_dispensary_id)s, updated_at = now()
 WHERE d.platform = %(platform)s AND d.slug = %(slug)s AND d.platform_dispensary_id IS NULL
   AND NOT EXISTS (SELECT FROM dispensaries o
                    WHERE o.platform = %(platform)s AND o.platform_dispensary_id = %(platform_dispensary_id)s)
RETURNING crawl_enabled;

-- name: promote
-- A found store becomes one that is crawled; one that is known gets its details. `inserted` tells which. A state's code replaces
-- what was there, such as the name of the state that earlier releases stored; another text replaces nothing.
INSERT INTO dispensaries (platform, platform_dispensary_id, slug, name, name_raw, menu_url, address, city, state, country, zipcode,
       latitude, longitude, timezone, phone, is_recreational, is_medical, enterprise_id)
VALUES (%(platform)s, %(platform_dispensary_id)s, %(slug)s, %(name)s, %(name_raw)s, %(menu_url)s, %(address)s, %(city)s, %(state)s,
       %(country)s, %(zipcode)s, %(latitude)s, %(longitude)s, %(timezone)s, %(phone)s, %(is_recreational)s, %(is_medical)s,
       %(enterprise_id)s)
ON CONFLICT (platform, platform_dispensary_id) WHERE platform_dispensary_id IS NOT NULL DO UPDATE SET
       slug = EXCLUDED.slug, name = EXCLUDED.name, name_raw = EXCLUDED.name_raw,
       address = coalesce(EXCLUDED.address, dispensaries.address), city = coalesce(EXCLUDED.city, dispensaries.city),
       state = coalesce(%(state_code)s, dispensaries.state, EXCLUDED.state), country = coalesce(EXCLUDED.country, dispensaries.country),
       zipcode = coalesce(EXCLUDED.zipcode, dispensaries.zipcode), latitude = coalesce(EXCLUDED.latitude, dispensaries.latitude),
       longitude = coalesce(EXCLUDED.longitude, dispensaries.longitude), timezone = coalesce(EXCLUDED.timezone, dispensaries.timezone),
       phone = coalesce(EXCLUDED.phone, dispensaries.phone),
       is_recreational = coalesce(EXCLUDED.is_recreational, dispensaries.is_recreational),
       is_medical = coalesce(EXCLUDED.is_medical, dispensaries.is_medical),
       enterprise_id = coalesce(EXCLUDED.enterprise_id, dispensaries.enterprise_id), updated_at = now()
RETURNING id, xmax = 0 AS inserted;

-- name: record_location
INSERT INTO dutchie_discovery_locations (platform, platform_dispensary_id, slug, name, city, state, country, status, reason, dispensary_id, raw)
VALUES (%(platform)s, %(platform_dispensary_id)s, %(slug)s, %(name)s, %(city)s, %(state)s, %(country)s, %(status)s, %(reason)s,
       %(dispensary_id)s, %(raw)s)
ON CONFLICT (platform, platform_dispensary_id) DO UPDATE SET
       slug = EXCLUDED.slug, name = EXCLUDED.name, city = EXCLUDED.city, state = EXCLUDED.state, country = EXCLUDED.country,
       status = EXCLUDED.status, reason = EXCLUDED.reason, raw = EXCLUDED.raw, last_seen_at = now(),
       dispensary_id = coalesce(EXCLUDED.dispensary_id, dutchie_discovery_locations.dispensary_id);

-- name: fill_in
-- Fills in details that are unknown; known values stay. A state that is not a code counts as unknown if a code is given.
UPDATE dispensaries SET
       menu_url = coalesce(menu_url, %(menu_url)s), address = coalesce(address, %(address)s), city = coalesce(city, %(city)s),
       state = CASE WHEN state = ANY (%(state_codes)s) THEN state ELSE coalesce(%(state_code)s, state, %(state)s) END, country = coalesce(country, %(country)s), zipcode = coalesce(zipcode, %(zipcode)s),
       latitude = coalesce(latitude, %(latitude)s), longitude = coalesce(longitude, %(longitude)s),
       timezone = coalesce(timezone, %(timezone)s), phone = coalesce(phone, %(phone)s),
       is_recreational = coalesce(is_recreational, %(is_recreational)s), is_medical = coalesce(is_medical, %(is_medical)s),
       enterprise_id = coalesce(enterprise_id, %(enterprise_id)s), updated_at = now()
 WHERE id = %(id)s
   AND (menu_url, address, city, state, country, zipcode, latitude, longitude, timezone, phone, is_recreational, is_medical, enterprise_id)
       IS DISTINCT FROM
       (coalesce(menu_url, %(menu_url)s), coalesce(address, %(address)s), coalesce(city, %(city)s),
        CASE WHEN state = ANY (%(state_codes)s) THEN state ELSE coalesce(%(state_code)s, state, %(state)s) END,
        coalesce(country, %(country)s), coalesce(zipcode, %(zipcode)s), coalesce(latitude, %(latitude)s), coalesce(longitude, %(longitude)s),
        coalesce(timezone, %(timezone)s), coalesce(phone, %(phone)s), coalesce(is_recreational, %(is_recreational)s),
        coalesce(is_medical, %(is_medical)s), coalesce(enterprise_id, %(enterprise_id)s));

-- name: attempted
UPDATE dispensaries SET last_attempt_at = %(at)s, last_error = %(error)s,
       last_fetch_at = CASE WHEN %(error)s::text IS NULL THEN %(at)s ELSE last_fetch_at END
 WHERE id = %(id)s;

-- name: close_duplicate
UPDATE dispensaries SET crawl_enabled = false, last_attempt_at = %(at)s, last_error = %(error)s, updated_at = now() WHERE id = %(id)s;

-- name: crawled
UPDATE dispensaries SET last_crawled_at = %(crawled_at)s, last_payload_id = %(payload_id)s, product_count = %(products)s,
       first_crawled_at = coalesce(first_crawled_at, %(crawled_at)s), last_error = NULL, updated_at = now()
 WHERE id = %(id)s;

-- name: set_crawl_enabled
UPDATE dispensaries SET crawl_enabled = %(enabled)s, updated_at = now() WHERE id = %(id)s RETURNING id;
