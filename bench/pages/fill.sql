-- An installation of millions, made by set-based statements: `:stores`, `:products` (of each store), `:tasks`, `:days`, `:states` (changes of a
-- product, at a mean) are numbers. Every store is crawled six times a day; what depends on chance depends on a hash, so that equal numbers give
-- equal rows. Each statement ends at a line that is empty.

CREATE FUNCTION pg_temp.chance(a bigint, b bigint DEFAULT 0) RETURNS double precision LANGUAGE sql IMMUTABLE AS
$$ SELECT (hashint8extended(a * 1000003 + b, 7) & 1048575) / 1048576.0 $$;

-- When a store's crawl was: six a day, the last one within the last four hours.
CREATE FUNCTION pg_temp.crawl_at(store bigint, crawl bigint) RETURNS timestamptz LANGUAGE sql STABLE AS
$$ SELECT now() - make_interval(days => :days) + (crawl - 1) * interval '4 hours' + store * (interval '4 hours' / (:stores + 1)) $$;

SELECT ensure_task_history_partition(now() - make_interval(days => d)), ensure_fetch_attempts_partition(now() - make_interval(days => d))
  FROM generate_series(0, :days + 1) d;

SELECT ensure_product_history_partition(now() - make_interval(days => d * 15)) FROM generate_series(0, :days / 15 + 1) d;

-- Stores: a twentieth is late or stale, one in a hundred was never crawled, one in fifty is switched off.
INSERT INTO dispensaries (platform, platform_dispensary_id, slug, name, name_raw, menu_url, address, city, state, country, zipcode, latitude, longitude,
                          timezone, is_recreational, is_medical, crawl_enabled, first_crawled_at, last_crawled_at, product_count, created_at)
SELECT 'dutchie', lpad(to_hex(s), 24, '0'), lower(p.state) || '-' || w.slug || '-' || s, w.name || ' ' || p.city || ' ' || s, w.name || ' ' || p.city || ' ' || s,
       'https://dutchie.com/dispensary/' || lower(p.state) || '-' || w.slug || '-' || s, s || ' Main St', p.city, p.state, 'US',
       lpad((p.zip + s % 90)::text, 5, '0'), p.lat + pg_temp.chance(s, 1) * 2 - 1, p.lon + pg_temp.chance(s, 2) * 2 - 1, p.tz, true, s % 2 = 0, s % 50 <> 7,
       pg_temp.crawl_at(s, 1), CASE WHEN s % 100 = 3 THEN NULL WHEN s % 20 = 5 THEN pg_temp.crawl_at(s, :days * 6 - 2) ELSE pg_temp.crawl_at(s, :days * 6) END,
       :products, now() - make_interval(days => :days)
  FROM generate_series(1, :stores) s
  JOIN (VALUES (0, 'AZ', 'Phoenix', 85001, 33.45, -112.07, 'America/Phoenix'), (1, 'CA', 'Los Angeles', 90001, 34.05, -118.24, 'America/Los_Angeles'),
               (2, 'CO', 'Denver', 80201, 39.74, -104.98, 'America/Denver'), (3, 'IL', 'Chicago', 60601, 41.88, -87.63, 'America/Chicago'),
               (4, 'MA', 'Boston', 2101, 42.36, -71.06, 'America/New_York'), (5, 'MD', 'Baltimore', 21201, 39.29, -76.61, 'America/New_York'),
               (6, 'MI', 'Detroit', 48201, 42.33, -83.05, 'America/Detroit'), (7, 'MO', 'St. Louis', 63101, 38.63, -90.20, 'America/Chicago'),
               (8, 'NJ', 'Newark', 7101, 40.74, -74.17, 'America/New_York'), (9, 'NV', 'Las Vegas', 89101, 36.17, -115.14, 'America/Los_Angeles'),
               (10, 'OH', 'Columbus', 43201, 39.96, -83.00, 'America/New_York'), (11, 'OR', 'Portland', 97201, 45.52, -122.68, 'America/Los_Angeles'))
       p(n, state, city, zip, lat, lon, tz) ON p.n = s % 12
  JOIN (VALUES (0, 'Green Leaf', 'green-leaf'), (1, 'High Desert Collective', 'high-desert'), (2, 'The Remedy Room', 'remedy-room'),
               (3, 'Sunrise Wellness', 'sunrise'), (4, 'Copper State Cannabis', 'copper-state'), (5, 'Harbor House', 'harbor-house'),
               (6, 'Wildflower', 'wildflower')) w(n, name, slug) ON w.n = s % 7;

-- Products of the last crawl. One in forty is gone, a sixth is out of stock; brands are as unequal as real ones.
CREATE TEMPORARY TABLE goods AS
SELECT n, CASE WHEN n = 77 THEN 'Zanzibar Moonrock' ELSE
            (ARRAY['Blue', 'Purple', 'Mossy', 'Tiger', 'Opal', 'Salt Flat', 'Golden', 'Midnight', 'Cherry', 'Lemon', 'Granddaddy', 'Ghost', 'Velvet',
                   'Electric', 'Pineapple', 'Frosted', 'Royal', 'Desert', 'Northern', 'Sour'])[1 + (n * 7) % 20] || ' ' ||
            (ARRAY['Dream', 'Haze', 'Custard', 'Gelato', 'Cake', 'Kush', 'Diesel', 'Runtz', 'Cookies', 'Punch', 'Mintz', 'Sherbet', 'Glue', 'Fire', 'Papaya',
                   'Widow', 'Zkittlez', 'Breath', 'Jack', 'Tangie'])[1 + (n / 20 + n) % 20] END AS strain,
       c.*, 5 + (pg_temp.chance(n, 3) * 60)::numeric(6, 2) AS price,
       (ARRAY['Hybrid', 'Indica', 'Sativa', 'Indica-Hybrid', 'Sativa-Hybrid', 'High CBD', NULL])[1 + n % 7] AS strain_type,
       (ARRAY['hybrid', 'indica', 'sativa', 'indica_hybrid', 'sativa_hybrid', 'cbd', NULL])[1 + n % 7] AS strain_canon
  FROM generate_series(1, :products) n
  JOIN (VALUES (0, 'Flower', NULL, 'flower', NULL, '3.5g', 3.5), (1, 'Flower', 'pre-ground', 'flower', 'ground', '7g', 7.0),
               (2, 'Vaporizers', 'cartridges', 'vaporizer', 'cartridge', '1g', 1.0), (3, 'Vaporizers', 'disposables', 'vaporizer', 'disposable', '.5g', 0.5),
               (4, 'Edible', 'gummies', 'edible', 'gummies', '100mg', NULL), (5, 'Edible', 'chocolates', 'edible', 'chocolate', '100mg', NULL),
               (6, 'Concentrate', 'live-resin', 'concentrate', 'live_resin', '1g', 1.0), (7, 'Pre-Rolls', 'singles', 'preroll', 'single', '1g', 1.0),
               (8, 'Tincture', NULL, 'tincture', NULL, '30ml', NULL), (9, 'Flower', NULL, 'flower', NULL, '1g', 1.0),
               (10, 'Topicals', 'balms', 'topical', 'balm', '50ml', NULL), (11, 'Accessories', 'batteries', 'accessory', 'battery', '1', NULL))
       c(k, category, subcategory, category_canon, subcategory_canon, option, grams) ON c.k = n % 12;

CREATE TEMPORARY TABLE kinds AS
SELECT g.*, b.n AS brand_n, CASE WHEN g.n = 78 THEN 'Nowhere Else Farms' ELSE
       (ARRAY['Lucent', 'Tall Grass', 'Sundial', 'Old Pueblo', 'Cactus & Co.', 'Moonlit', 'Green Dot', 'Timeless', 'Wana', 'Camino', 'Stiiizy', 'Alien',
              'Grow Sciences', 'Mohave', 'Item 9', 'Select', 'Raw Garden', 'Jeeter', 'Kiva', 'Dime'])[1 + b.n % 20] || CASE WHEN b.n >= 20 THEN ' ' || b.n / 20 ELSE '' END
       END AS brand
  FROM goods g CROSS JOIN LATERAL (SELECT (400 * pg_temp.chance(g.n, 4) ^ 2)::integer AS n) b;

-- How often each product changed so far, and with which crawl last; what changed at a crawl that was quarantined shows at the next.
CREATE FUNCTION pg_temp.changes(product bigint) RETURNS integer LANGUAGE sql IMMUTABLE AS
$$ SELECT (2 * :states * pg_temp.chance(product, 5))::integer $$;

CREATE FUNCTION pg_temp.spread(product bigint, i integer) RETURNS integer LANGUAGE sql IMMUTABLE AS
$$ SELECT 2 + floor((i - 1 + pg_temp.chance(product, i)) * (:days * 6 - 3) / greatest(pg_temp.changes(product), 1))::integer $$;

CREATE FUNCTION pg_temp.changed_in(product bigint, store bigint, i integer) RETURNS integer LANGUAGE sql IMMUTABLE AS
$$ SELECT CASE WHEN i <= 0 THEN 1 ELSE pg_temp.spread(product, i) + ((store * 31 + pg_temp.spread(product, i)) % 97 = 0)::integer END $$;

INSERT INTO catalog_products (id, dispensary_id, provider, provider_product_id, content_hash, consecutive_misses, first_seen_at, last_seen_at, state_from,
       changed_at, name_raw, name, brand_name_raw, brand_name, category, subcategory, strain_type, status_raw, price_rec, price_rec_special, price_med,
       stock_status, is_in_stock, quantity, thc_lo, thc_hi, thc_unit, variants, specials, image_url, extra, category_canon, subcategory_canon,
       strain_canon, state_seen_to, present)
SELECT x.id, x.s, 'dutchie', lpad(to_hex(x.id), 24, '0'), decode(md5(x.id::text), 'hex'), CASE WHEN x.gone THEN 3 ELSE 0 END,
       pg_temp.crawl_at(x.s, 1), CASE WHEN x.gone THEN pg_temp.crawl_at(x.s, x.last) END, pg_temp.crawl_at(x.s, x.last), pg_temp.crawl_at(x.s, x.last),
       x.name, x.name, x.brand, x.brand, x.category, x.subcategory, x.strain_type, 'Active', x.now_price, x.special, x.now_price,
       x.stock, CASE x.stock WHEN 'in_stock' THEN true WHEN 'oos' THEN false END, CASE x.stock WHEN 'in_stock' THEN 1 + x.id % 40 ELSE 0 END,
       x.thc, x.thc + 3, '%',
       jsonb_build_array(jsonb_strip_nulls(jsonb_build_object('option', x.option, 'price_rec', x.now_price, 'price_med', x.now_price, 'special_rec', x.special,
         'weight_g', x.grams, 'price_per_g', round(x.now_price / x.grams, 2), 'stock_status', x.stock, 'quantity', CASE x.stock WHEN 'in_stock' THEN 1 + x.id % 40 ELSE 0 END))),
       CASE WHEN x.special IS NOT NULL THEN '[{"kind": "percent", "name": "20% off", "value": 20, "menu_type": "both", "special_id": "d20e3575307cbe105ce46afe"}]'::jsonb END,
       'https://images.dutchie.com/' || md5(x.n::text),
       jsonb_build_object('slug', replace(lower(x.name), ' ', '-'), 'brand_id', md5(x.brand), 'net_weight', jsonb_build_object('unit', 'MILLIGRAMS', 'values', '[1000]'::jsonb),
         'weight_rank', 1000, 'dispensary_id', md5(x.s::text), 'enterprise_product_id', md5(x.id::text)),
       x.category_canon, x.subcategory_canon, x.strain_canon, NULL, NOT x.gone
  FROM (SELECT p.*, k.*, k.strain || ' | ' || coalesce(k.subcategory, k.category) || ' | ' || k.option AS name,
               k.price + p.changes % 5 AS now_price,
               CASE WHEN p.id % 6 = 1 THEN round((k.price + p.changes % 5) * 0.8, 2) END AS special,
               CASE WHEN p.id % 40 = 3 THEN 'oos' WHEN pg_temp.chance(p.id, 6) < 0.16 THEN 'oos' WHEN p.id % 50 = 9 THEN 'unknown' ELSE 'in_stock' END AS stock,
               (10 + 20 * pg_temp.chance(p.id, 8))::numeric(5, 2) AS thc, p.id % 40 = 3 AS gone,
               pg_temp.changed_in(p.id, p.s, p.changes) AS last
          FROM (SELECT (s - 1) * :products + n AS id, s, n, pg_temp.changes((s - 1) * :products + n) AS changes
                  FROM generate_series(1, :stores) s, generate_series(1, :products) n) p(id, s, product, changes)
          -- Stores have different parts of what there is, so that brands and names are not in all of them.
          JOIN kinds k ON k.n = 1 + (p.product + p.s * 13) % :products) x
 ORDER BY x.id;

SELECT setval(pg_get_serial_sequence('catalog_products', 'id'), (SELECT max(id) FROM catalog_products));

-- History: what each product was before each of its changes.
INSERT INTO product_history (product_id, seen_from, seen_to, ended_at, dispensary_id, quantity, present, quantity_capped, stock_status, price_rec, price_rec_special,
                         price_med, thc_lo, thc_hi, thc_unit, prices, stock)
SELECT x.id, pg_temp.crawl_at(x.s, x.started), pg_temp.crawl_at(x.s, x.ended - 1), pg_temp.crawl_at(x.s, x.ended), x.s, x.quantity, true, false, x.stock, x.price, x.special,
       x.price, 18, 21, '%', json_build_array(json_build_array(x.option, x.price, x.special, x.price, NULL)),
       json_build_array(json_build_array(x.option, x.stock, x.quantity, false))
  FROM (SELECT p.id, p.dispensary_id AS s, pg_temp.changed_in(p.id, p.dispensary_id, i - 1) AS started, pg_temp.changed_in(p.id, p.dispensary_id, i) AS ended,
               p.price_rec - pg_temp.changes(p.id) % 5 + (i - 1) % 5 AS price, CASE WHEN (p.id + i) % 9 = 0 THEN round(p.price_rec * 0.7, 2) END AS special,
               p.variants -> 0 ->> 'option' AS option, (p.id + i) % 30 AS quantity, CASE WHEN (p.id + i) % 30 = 0 THEN 'oos' ELSE 'in_stock' END AS stock
          FROM catalog_products p CROSS JOIN LATERAL generate_series(1, pg_temp.changes(p.id)) i) x
 WHERE x.started < x.ended
 ORDER BY x.ended, x.s, x.id;

-- Tasks that are over. A crawl is a fetch and, a little later, its refresh; the others are failures of a dozen kinds, what was cancelled, and what
-- people asked for.
CREATE TEMPORARY TABLE crawls AS
SELECT (j - 1) * :stores + s AS payload_id, s, j, pg_temp.crawl_at(s, j) AS at, (s * 31 + j) % 97 = 0 AS bad
  FROM generate_series(1, :days * 6) j, generate_series(1, :stores) s;

CREATE TEMPORARY TABLE over AS
SELECT row_number() OVER (ORDER BY x.created_at, x.k, x.payload_id) AS id, x.* FROM (
  SELECT 'payload_fetch' AS role, s AS store, at - interval '90 seconds' AS created_at, at - interval '31 seconds' AS started_at, at AS completed_at, 'completed' AS status,
         NULL AS reason, '{}'::jsonb AS payload, payload_id, 0 AS priority, 1 AS k, 1 AS attempt FROM crawls
  UNION ALL
  SELECT 'product_refresh', s, at, at + interval '2 seconds', at + interval '5 seconds', CASE WHEN bad THEN 'failed' ELSE 'completed' END,
         CASE WHEN bad THEN format('payload %s is quarantined (only %s of %s products)', payload_id, 5 + s % 40, :products) END,
         jsonb_build_object('payload_id', payload_id), payload_id, 10, 2, 1 FROM crawls
  UNION ALL
  SELECT CASE WHEN g % 1000 < 190 THEN 'payload_fetch' WHEN g % 1000 < 192 THEN 'analytics_refresh' WHEN g % 1000 < 205 THEN 'store_discovery'
              WHEN g % 1000 < 225 THEN 'entry_point_discovery' WHEN g % 1000 < 245 THEN 'product_discovery' ELSE 'product_refresh' END,
         CASE WHEN g % 1000 BETWEEN 190 AND 204 THEN NULL ELSE 1 + (g * 7919) % :stores END, t.at - interval '2 minutes',
         t.at - interval '1 minute' * pg_temp.chance(g, 1), t.at,
         CASE WHEN g % 1000 < 110 THEN 'failed' WHEN g % 1000 < 125 THEN 'cancelled' ELSE 'completed' END,
         CASE WHEN g % 1000 < 110 THEN CASE (60 * pg_temp.chance(g, 2) ^ 2)::integer / 5
                WHEN 0 THEN format('dutchie.com: the server failed with HTTP 503 (%s times)', 1 + g % 4)
                WHEN 1 THEN format('ConnectionError: 10.%s.%s.7:%s refused the connection', g % 250, g % 99, 8000 + g % 400)
                WHEN 2 THEN format('dutchie.com refused every identity: HTTP 403 (%s times)', 1 + g % 9)
                WHEN 3 THEN format('TimeoutError: page %s of store %s took %s.2 s', g % 9, g % :stores, 30 + g % 30)
                WHEN 4 THEN format('store %s (Green Leaf %s) is not resolved yet: run entry_point_discovery', g % :stores, g % :stores)
                WHEN 5 THEN format('dutchie knows no store ''az-green-leaf-%s''', g % :stores)
                WHEN 6 THEN format('payload %s does not exist', g)
                WHEN 7 THEN format('KeyError: "filteredProducts" in the answer for %s', md5(g::text))
                WHEN 8 THEN format('dutchie.com is not asked now (its circuit is open): it refused %s identities', 3 + g % 9)
                WHEN 9 THEN format('worker pod-%s-%s fell silent', g % 15, g % 5)
                WHEN 10 THEN format('store %s was removed meanwhile', g % :stores)
                ELSE format('dutchie.com redirects to "https://dutchie.com/closed/%s": only https is followed', g) END
              WHEN g % 1000 < 125 THEN 'cancelled' END,
         CASE WHEN g % 1000 >= 245 THEN jsonb_build_object('payload_id', 1 + (g * 104729) % (:days * 6 * :stores))
              WHEN g % 1000 BETWEEN 192 AND 204 THEN jsonb_build_object('state_code', (ARRAY['AZ', 'CA', 'NV'])[1 + g % 3]) ELSE '{}'::jsonb END,
         0, CASE WHEN g % 1000 < 50 THEN 20 ELSE 10 END, 3, 1 + g % 3
    FROM generate_series(1::bigint, greatest(:tasks - 2 * :stores * :days * 6 - 10 * :stores, 100)) g
   CROSS JOIN LATERAL (SELECT now() - make_interval(days => :days) * (1 - g::double precision / greatest(:tasks - 2 * :stores * :days * 6 - 10 * :stores, 100)) AS at) t) x
 WHERE x.completed_at < now();

INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, last_heartbeat_at, dispensary_id, priority, attempt, retry_count, max_retries,
                          postpone_count, role, platform, status, worker_id, error_message, payload, result)
SELECT id, created_at, started_at, started_at, completed_at, started_at, store, priority, attempt, attempt - 1, 3, 0, role, 'dutchie', status,
       'pod-' || lpad((id % 15)::text, 2, '0') || '-' || id / 15 % 5, reason, payload, CASE status WHEN 'completed' THEN jsonb_build_object('products', :products, 'changed', id % 50) END
  FROM over ORDER BY completed_at, id;

-- What the fetches brought, and what was made of it.
INSERT INTO raw_crawl_payloads (id, task_id, dispensary_id, platform, status, reason, product_count, total_count, page_count, is_first, fetched_at, path, bytes, raw_bytes,
                                sha256, content_sha256, applied_at) OVERRIDING SYSTEM VALUE
SELECT c.payload_id, o.id, c.s, 'dutchie', CASE WHEN c.bad THEN 'quarantined' ELSE 'ok' END, CASE WHEN c.bad THEN 'far fewer products than usual' END,
       CASE WHEN c.bad THEN 5 + c.s % 40 ELSE :products END, :products, 5, c.j = 1, c.at, 'payloads/' || c.s || '/' || c.j || '.json.gz', 180000, 1900000,
       md5(c.payload_id::text) || md5(c.s::text), md5(c.payload_id::text) || md5('c'), CASE WHEN NOT c.bad THEN c.at + interval '5 seconds' END
  FROM crawls c JOIN over o ON o.payload_id = c.payload_id AND o.k = 1 ORDER BY c.payload_id;

SELECT setval(pg_get_serial_sequence('raw_crawl_payloads', 'id'), (SELECT max(id) FROM raw_crawl_payloads));

INSERT INTO store_crawls (dispensary_id, crawled_at, payload_id, products, new_products, changed, unchanged, returned, missing, out_of_stock, price_changes, stock_changes)
SELECT s, at, payload_id, :products, CASE WHEN j = 1 THEN :products ELSE 0 END, 15, :products - 15, 0, 2, 1, 9, 8 FROM crawls WHERE NOT bad ORDER BY payload_id;

SELECT number_crawls(10000000);

UPDATE dispensaries d SET last_payload_id = p.id FROM (SELECT max(id) AS id, dispensary_id FROM raw_crawl_payloads WHERE status = 'ok' GROUP BY 2) p WHERE p.dispensary_id = d.id;

-- Tasks that live. A tenth of the stores are worked on; behind the heads others are parked, and some wait for their time or for another try.
SELECT setval('task_ids', (SELECT max(id) FROM over));

INSERT INTO task_live (role, dispensary_id, state, worker_id, claimed_at, started_at, last_heartbeat_at, attempt, created_at, priority)
SELECT CASE WHEN s % 3 = 0 THEN 'product_refresh' ELSE 'payload_fetch' END, s, 'a', 'pod-' || lpad((s % 15)::text, 2, '0') || '-' || s % 5, now() - interval '40 seconds',
       CASE WHEN s % 7 > 0 THEN now() - interval '35 seconds' END, CASE WHEN s % 7 > 0 THEN now() - interval '5 seconds' END, 1, now() - interval '10 minutes', 0
  FROM generate_series(1, greatest(:stores / 10, 1)) s;

INSERT INTO task_live (role, dispensary_id, state, priority, created_at, payload)
SELECT CASE k WHEN 1 THEN 'payload_fetch' WHEN 2 THEN 'product_refresh' ELSE 'product_discovery' END, s, 'r', CASE WHEN s % 9 = 0 THEN 20 ELSE 10 * (k - 1) END,
       now() - interval '1 second' * (s % 3000), CASE k WHEN 2 THEN jsonb_build_object('payload_id', s) ELSE '{}' END
  FROM generate_series(1, 3) k, generate_series(:stores / 10 + 1, :stores) s WHERE s % 10 < 7;

INSERT INTO task_live (role, dispensary_id, state, priority, created_at, payload)
SELECT CASE k WHEN 1 THEN 'payload_fetch' ELSE 'product_refresh' END, s, 'p', 0, now() - interval '1 second' * (s % 5000), CASE k WHEN 2 THEN jsonb_build_object('payload_id', s) ELSE '{}' END
  FROM generate_series(1, 2) k, generate_series(:stores / 10 + 1, :stores) s, generate_series(1, 4) times WHERE s % 10 < 7;

INSERT INTO task_live (role, dispensary_id, state, scheduled_for, created_at, attempt, retry_count, error_message)
SELECT 'payload_fetch', s, 's', now() + interval '4 hours' * pg_temp.chance(s, k), now() - interval '20 minutes', (k = 1)::integer, (k = 1)::integer,
       CASE WHEN k = 1 THEN format('dutchie.com: the server failed with HTTP 503 (%s times)', 1 + s % 4) END
  FROM generate_series(1, 3) k, generate_series(1, :stores) s;

-- Who works: 15 pods of five, and those of the weeks before.
INSERT INTO worker_registry (worker_id, friendly_name, pod, host, pid, status, started_at, last_heartbeat_at, heartbeat)
SELECT 'pod-' || lpad(p::text, 2, '0') || '-' || w, (ARRAY['Ada', 'Bo', 'Cleo', 'Dex', 'Eli'])[w + 1],
       (ARRAY['Aethelgard', 'Xylos', 'Kryll', 'Vorn', 'Nym', 'Oris', 'Thal', 'Quell', 'Brin', 'Sable', 'Fenn', 'Lyra', 'Mave', 'Rook', 'Zeph'])[p + 1], 'node-' || p, 100 + w,
       CASE WHEN (p * 5 + w) % 19 = 4 THEN 'backing_off' WHEN (p * 5 + w) % 37 = 9 THEN 'paused' ELSE 'active' END, now() - interval '3 days', now(),
       jsonb_build_object('worker_id', 'pod-' || p || '-' || w, 'current_task_id', NULL, 'current_task_ids', '[]'::jsonb, 'active_task_count', (p + w) % 4, 'max_concurrent_tasks', 3,
         'status', 'active', 'resources', jsonb_build_object('memory_mb', 400 + 60 * w, 'memory_total_mb', 1024, 'memory_rss_mb', 400 + 60 * w, 'memory_percent', 40 + 7 * w,
           'cpu_user_ms', 90000, 'cpu_system_ms', 9000, 'cpu_percent', (p * 7 + w * 11) % 100, 'is_backing_off', (p * 5 + w) % 19 = 4,
           'backoff_reason', CASE WHEN (p * 5 + w) % 19 = 4 THEN 'CPU at 93 %' END))
  FROM generate_series(0, 14) p, generate_series(0, 4) w;

INSERT INTO worker_registry (worker_id, friendly_name, pod, host, pid, status, started_at, last_heartbeat_at, heartbeat)
SELECT 'old-' || n, 'Ada', 'Xylos', 'node', n, 'stopped', now() - interval '1 hour' * n, now() - interval '1 hour' * n, '{}' FROM generate_series(1, 500) n;

-- The log of each worker, as long as it may become.
INSERT INTO log_lines (worker_id, seq, at, level, action, message, task_id, attempt, details)
SELECT w.worker_id, n, now() - interval '10 seconds' * (50000 - n), CASE WHEN n % 200 = 0 THEN 'warning' ELSE 'info' END, 'task_completed', 'task done', n * 7, 1,
       '{"status": "completed", "ran_ms": 812.4, "role": "payload_fetch", "dispensary_id": 45}'
  FROM worker_registry w, generate_series(1, 50000) n WHERE w.worker_id LIKE 'pod-00-%';

-- Proxies, hosts, and a fortnight of requests.
INSERT INTO proxies (host, port, username, password, is_active, city, state, country, timezone, last_used_at, success_count, failure_count, avg_response_time_ms,
                     deactivated_at, disabled_at, disabled_reason)
SELECT '10.9.' || n / 250 || '.' || n % 250, 8080, 'u', 'p', n % 15 > 1, 'Phoenix', 'AZ', 'US', 'America/Phoenix', now() - interval '1 second' * n, 1000 + n, n % 4, 350,
       CASE WHEN n % 15 = 0 THEN now() END, CASE WHEN n % 15 = 1 THEN now() END, CASE WHEN n % 15 = 1 THEN 'too slow' END FROM generate_series(1, 200) n;

INSERT INTO hosts (host, rate, burst, concurrency, current_rate, circuit, circuit_opened_at, circuit_until, circuit_reason, last_ok_at)
SELECT h, 2, 4, 6, 2, CASE WHEN n = 3 THEN 'open' ELSE 'closed' END, CASE WHEN n = 3 THEN now() END, CASE WHEN n = 3 THEN now() + interval '1 day' END,
       CASE WHEN n = 3 THEN 'it refused 9 identities in a row' END, now()
  FROM unnest(ARRAY['dutchie.com', 'images.dutchie.com', 'weedmaps.com', 'images.weedmaps.com']) WITH ORDINALITY h(h, n);

INSERT INTO host_events (host, kind, reason, until, happened_at)
SELECT 'dutchie.com', (ARRAY['cooldown', 'rate_reduced', 'circuit_opened', 'circuit_closed'])[1 + n % 4], 'HTTP 429', NULL, now() - interval '10 minutes' * n
  FROM generate_series(1, 2000) n ORDER BY n DESC;

INSERT INTO fetch_attempts (task_id, dispensary_id, host, proxy_id, profile, verdict, blame, reaction, status, waited_ms, bytes, elapsed_ms, error, attempted_at)
SELECT o.id, o.store, 'dutchie.com', 1 + (o.id + a.n) % 200, 'chrome131-windows', v.verdict, CASE v.verdict WHEN 'ok' THEN 'none' ELSE 'target' END,
       CASE v.verdict WHEN 'ok' THEN 'return' ELSE 'rotate' END, CASE v.verdict WHEN 'ok' THEN 200 WHEN 'blocked' THEN 403 ELSE 429 END, 12, 380000, 420,
       CASE v.verdict WHEN 'ok' THEN NULL ELSE 'refused' END, o.completed_at - interval '6 seconds' * (6 - a.n)
  FROM over o CROSS JOIN generate_series(1, 4) a(n)
 CROSS JOIN LATERAL (SELECT CASE WHEN (o.id + a.n) % 40 = 0 THEN 'blocked' WHEN (o.id + a.n) % 90 = 1 THEN 'rate_limited' ELSE 'ok' END AS verdict) v
 WHERE o.role = 'payload_fetch' AND o.completed_at > now() - interval '13 days' ORDER BY o.completed_at, a.n;

INSERT INTO fetch_totals SELECT host, verdict, count(*), 0, sum(bytes), sum(waited_ms), sum(elapsed_ms) FROM fetch_attempts GROUP BY 1, 2;

-- Schedules and alerts.
INSERT INTO task_schedules (name, role, platform, interval_hours, priority, next_run_at, last_run_at, last_task_count)
SELECT n, r, 'dutchie', i, p, now() + interval '3 hours', now() - interval '1 hour', 1900
  FROM (VALUES ('payload_fetch_all', 'payload_fetch', 4, 0), ('store_discovery_dutchie', 'store_discovery', 24, 5), ('analytics_refresh', 'analytics_refresh', 6, 0)) x(n, r, i, p)
ON CONFLICT (name) DO UPDATE SET next_run_at = excluded.next_run_at, last_run_at = excluded.last_run_at;

INSERT INTO schedule_runs (schedule_id, fire_at, ran_at, task_count)
SELECT s.id, now() - interval '4 hours' * n, now() - interval '4 hours' * n, 1900 FROM task_schedules s, generate_series(1, 180) n;

INSERT INTO alert_rules (name, condition, reach, product_id, amount, armed_at, created_at, updated_at)
SELECT 'Rule ' || n, 'price_below', 'product', n * 97, 20, now(), now(), now() FROM generate_series(1, 200) n;

INSERT INTO alert_channels (rule_id, kind, address, shown) SELECT id, 'webhook', 'https://hooks.invalid/' || id, 'https://hooks.invalid/…' FROM alert_rules;

INSERT INTO alert_events (rule_id, source, product_id, dispensary_id, fired_at, due_at, notified, facts)
SELECT r.id, 'crawl ' || n, r.product_id, 1, now() - interval '3 minutes' * n, now() - interval '3 minutes' * n, true,
       jsonb_build_object('product', 'Blue Dream', 'store', 'Green Leaf', 'before', 30, 'after', 20)
  FROM generate_series(1, 20000) n JOIN alert_rules r ON r.id = (SELECT min(id) FROM alert_rules) + n % 200 ORDER BY n DESC;

INSERT INTO alert_deliveries (rule_id, channel_id, channel, event_ids, payload, status, attempts, response_code, created_at, delivered_at)
SELECT e.rule_id, c.id, c.shown, ARRAY[e.id], '{}', CASE WHEN e.id % 20 = 0 THEN 'failed' ELSE 'delivered' END, 1, CASE WHEN e.id % 20 = 0 THEN 500 ELSE 200 END, e.fired_at,
       CASE WHEN e.id % 20 > 0 THEN e.fired_at END
  FROM alert_events e JOIN alert_channels c ON c.rule_id = e.rule_id ORDER BY e.id;

-- Pictures: the same product has one picture at all stores; most are stored.
INSERT INTO images (sha256, path, width, height, bytes, source_format, source_bytes, colour)
SELECT sha256(n::text::bytea), 'images/products/az/1/x/' || n || '/image-1.webp', 1200, 1200, 90000, 'jpeg', 200000, '#808080' FROM generate_series(1, :products) n;

INSERT INTO image_urls (url, host, status, due_at, sha256)
SELECT 'https://images.dutchie.com/' || md5(n::text), 'images.dutchie.com', 'stored', NULL, sha256(n::text::bytea) FROM generate_series(1, :products) n;

DELETE FROM image_references;

INSERT INTO image_references (product_id, url, status, url_id, path, error, settled_at)
SELECT p.id, p.image_url, CASE WHEN p.id % 60 = 1 THEN 'failed' ELSE 'stored' END, s.id, CASE WHEN p.id % 60 <> 1 THEN 'images/products/az/' || p.dispensary_id || '/' || p.id || '.webp' END,
       CASE WHEN p.id % 60 = 1 THEN 'HTTP 404' END, now()
  FROM catalog_products p JOIN image_urls s ON s.url = p.image_url ORDER BY p.id;

DROP TABLE over, crawls, kinds, goods;
