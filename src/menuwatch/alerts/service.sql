-- Alert rules for people.

-- name: rules
SELECT r.id, r.name, r.enabled, r.condition, r.product_id, r.canonical_product_id, c.name AS canonical_product,
       r.dispensary_id AS store_id, d.name AS store, r.brand, r.category, r.search,
       r.state, r.platform, r.latitude, r.longitude, r.miles, r.amount, r.percent, r.option, r.price, r.hysteresis_percent, r.debounce_crawls, r.debounce_minutes,
       r.cooldown_minutes, r.digest, to_char(r.digest_at, 'HH24:MI') AS digest_at, r.timezone, r.on_existing, r.armed_at,
       r.muted_until, r.enabled AND r.holds AS firing,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('kind', c.kind, 'shown', c.shown) ORDER BY c.id), '[]')
          FROM alert_channels c WHERE c.rule_id = r.id) AS channels,
       (SELECT e.fired_at FROM alert_events e WHERE e.rule_id = r.id ORDER BY e.id DESC LIMIT 1) AS last_fired_at,
       (SELECT count(*) FROM alert_matches m WHERE m.rule_id = r.id AND m.phase = 'pending') AS pending,
       r.created_at, r.updated_at
  FROM alert_rules r
  LEFT JOIN dispensaries d ON d.id = r.dispensary_id
  LEFT JOIN canonical_products c ON c.id = r.canonical_product_id
 WHERE (%(id)s::integer IS NULL OR r.id = %(id)s) AND (%(after)s::integer IS NULL OR r.id > %(after)s)
 ORDER BY r.id LIMIT %(limit)s;

-- name: canonical_product
SELECT c.id, c.name FROM canonical_products c WHERE c.id = live_canonical_product(%(id)s::bigint);

-- name: product_place
SELECT p.dispensary_id, p.provider, d.state FROM catalog_products p JOIN dispensaries d ON d.id = p.dispensary_id WHERE p.id = %(id)s;

-- name: brand_names
SELECT DISTINCT brand_name FROM catalog_products WHERE brand_name IS NOT NULL;

-- name: category_names
SELECT category FROM catalog_products WHERE category IS NOT NULL UNION SELECT category_canon FROM catalog_products WHERE category_canon IS NOT NULL;

-- name: store_names
SELECT name FROM dispensaries UNION SELECT slug FROM dispensaries WHERE slug IS NOT NULL;
