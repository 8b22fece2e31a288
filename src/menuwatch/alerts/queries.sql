-- Rules, what they found, and what was sent.

-- name: has_rules
SELECT EXISTS (SELECT FROM alert_rules WHERE enabled AND reach <> 'operations');

-- name: changed
-- What a menu changed, as rules look for it. Planned for each menu, as each step below is: one statement that joins all of them is at the
-- mercy of guesses about how much a menu changes.
SELECT p.id, lower(p.name), lower(p.brand_name), lower(p.category), lower(p.category_canon) FROM catalog_products p
 WHERE p.dispensary_id = %(dispensary_id)s AND p.provider = %(provider)s AND p.state_from = %(crawled_at)s;

-- name: matched_since
-- Listings that were new on the menu before this one and were matched after it: rules about their canonical product have not seen them. Those of
-- a store's first menu are no news. Nothing where there are no such rules.
SELECT p.id, lower(p.name), lower(p.brand_name), lower(p.category), lower(p.category_canon)
  FROM catalog_products p JOIN dispensaries d ON d.id = p.dispensary_id
 WHERE p.dispensary_id = %(dispensary_id)s AND p.provider = %(provider)s
   AND p.first_seen_at > d.first_crawled_at
   AND p.first_seen_at = (SELECT max(c.crawled_at) FROM store_crawls c WHERE c.dispensary_id = %(dispensary_id)s AND c.crawled_at < %(crawled_at)s)
   AND EXISTS (SELECT FROM alert_rules WHERE enabled AND reach = 'canonical_product');

-- name: canonical_products
-- What these listings are matched to; nothing where no rule is about it.
SELECT i.product_id, i.canonical_product_id FROM product_identities i
 WHERE i.product_id = ANY (%(ids)s::bigint[]) AND i.canonical_product_id IS NOT NULL
   AND EXISTS (SELECT FROM alert_rules WHERE enabled AND reach = 'canonical_product');

-- name: awaited
-- Products that did not change with this crawl, and that a rule waits on.
SELECT m.rule_id, m.product_id FROM alert_matches m JOIN catalog_products p ON p.id = m.product_id
 WHERE m.dispensary_id = %(dispensary_id)s AND m.phase = 'pending' AND p.provider = %(provider)s AND p.state_from <> %(crawled_at)s;

-- name: candidates
-- Rules that may be about some of these products. Each arm has an index of its own, so rules about something else cost nothing.
SELECT r.id, r.product_id, live_canonical_product(r.canonical_product_id), lower(r.brand), lower(r.category), lower(r.search) FROM alert_rules r JOIN dispensaries d ON d.id = %(dispensary_id)s
 WHERE r.id IN (SELECT id FROM alert_rules WHERE enabled AND reach = 'product' AND product_id = ANY (%(ids)s::bigint[])
                 UNION ALL
                SELECT id FROM alert_rules WHERE enabled AND reach = 'canonical_product'
                   AND canonical_product_id = ANY (merged_canonical_products(%(canonical)s::bigint[]))
                 UNION ALL
                SELECT id FROM alert_rules WHERE enabled AND reach = 'brand' AND lower(brand) = ANY (%(brands)s::text[])
                 UNION ALL
                SELECT id FROM alert_rules WHERE enabled AND reach = 'category' AND lower(category) = ANY (%(categories)s::text[])
                 UNION ALL
                SELECT id FROM alert_rules WHERE enabled AND reach = 'store' AND dispensary_id = %(dispensary_id)s
                 UNION ALL
                SELECT id FROM alert_rules WHERE enabled AND reach = 'search')
   AND (r.dispensary_id IS NULL OR r.dispensary_id = d.id) AND (r.state IS NULL OR r.state = d.state)
   AND (r.platform IS NULL OR r.platform = %(provider)s)
   AND (r.miles IS NULL OR distance_meters(r.latitude, r.longitude, d.latitude, d.longitude) <= r.miles * 1609.344);

-- piece: in_scope
-- Products that a rule is about, as they are now: those of stores that are there.
  FROM catalog_products p JOIN dispensaries d ON d.id = p.dispensary_id
 WHERE (%(product_id)s::bigint IS NULL OR p.id = %(product_id)s)
   AND (%(canonical_product_id)s::bigint IS NULL OR p.id = ANY (ARRAY (SELECT unnest(listings_of(ARRAY[%(canonical_product_id)s::bigint], NULL)))))
   AND (%(dispensary_id)s::integer IS NULL OR p.dispensary_id = %(dispensary_id)s)
   AND (%(miles)s::double precision IS NULL
        OR distance_meters(%(latitude)s::double precision, %(longitude)s::double precision, d.latitude, d.longitude) <= %(miles)s * 1609.344)
   AND (%(state)s::text IS NULL OR d.state = %(state)s)
   AND (%(platform)s::text IS NULL OR p.provider = %(platform)s)
   AND (%(brand)s::text IS NULL OR lower(p.brand_name) = lower(%(brand)s))
   AND (%(category)s::text IS NULL OR lower(%(category)s) IN (lower(p.category), lower(p.category_canon)))
   AND (%(search)s::text IS NULL OR position(lower(%(search)s) IN lower(p.name)) > 0)

-- name: count_in_scope
SELECT count(*) {in_scope};

-- name: candidates_in_scope
-- Those in scope that may match now: a product's own values rule the others out, where no option is given.
SELECT p.id {in_scope}
   AND (NOT %(out)s OR p.stock_status = 'oos')
   AND (%(below)s::numeric IS NULL OR least(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special) < %(below)s)
 ORDER BY p.id;

-- name: products
-- Products with their present state and the one before it. `observed`: the store's last crawl holds the product.
SELECT p.id, p.dispensary_id, p.provider_product_id, p.name, p.brand_name, p.category, d.name AS store, d.slug, d.state,
       p.last_seen_at IS NULL AS observed,
       p.stock_status, p.price_rec, p.price_rec_special, p.price_med, p.price_med_special, option_prices(p.variants)::text,
       option_stock(p.variants)::text,
       o.stock_status, o.price_rec, o.price_rec_special, o.price_med, o.price_med_special, o.prices::text, o.stock::text
  FROM catalog_products p
  JOIN dispensaries d ON d.id = p.dispensary_id
  LEFT JOIN product_history o ON o.product_id = p.id AND o.ended_at = p.state_from
 WHERE p.id = ANY (%(ids)s::bigint[]);

-- name: known_whole
-- Whether a whole menu of the store was applied before this crawl: only then is a product new that was not there.
SELECT EXISTS (SELECT FROM store_crawls c LEFT JOIN raw_crawl_payloads p ON p.id = c.payload_id
                WHERE c.dispensary_id = %(dispensary_id)s AND c.crawled_at < %(crawled_at)s AND p.is_partial IS NOT TRUE);

-- name: states
SELECT rule_id, product_id, phase, since, crawls, reference, fired_at FROM alert_matches
 WHERE product_id = ANY (%(ids)s::bigint[]) AND rule_id = ANY (%(rules)s::integer[]);

-- name: save_states
INSERT INTO alert_matches (rule_id, product_id, dispensary_id, phase, since, crawls, reference, fired_at)
SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) n(rule_id integer, product_id bigint, dispensary_id integer, phase text, since timestamptz,
       crawls integer, reference numeric, fired_at timestamptz)
    ON CONFLICT (rule_id, product_id) DO UPDATE SET phase = excluded.phase, since = excluded.since, crawls = excluded.crawls,
       reference = excluded.reference, fired_at = excluded.fired_at;

-- name: drop_states
DELETE FROM alert_matches m USING unnest(%(rules)s::integer[], %(products)s::bigint[]) n(rule_id, product_id)
 WHERE m.rule_id = n.rule_id AND m.product_id = n.product_id;

-- name: forget_states
DELETE FROM alert_matches WHERE rule_id = %(rule_id)s;

-- name: insert_events
INSERT INTO alert_events (rule_id, source, product_id, dispensary_id, fired_at, due_at, facts)
SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) n(rule_id integer, source text, product_id bigint, dispensary_id integer,
       fired_at timestamptz, due_at timestamptz, facts jsonb)
    ON CONFLICT (rule_id, source) DO NOTHING;

-- name: rules
-- Locks the rules until the results are written, so that they are not edited or deleted meanwhile.
SELECT * FROM alert_rules WHERE id = ANY (%(ids)s::integer[]) AND enabled ORDER BY id FOR KEY SHARE;

-- name: all_rules
SELECT * FROM alert_rules ORDER BY id;

-- name: find_rule
SELECT * FROM alert_rules WHERE name = %(text)s OR id = %(id)s ORDER BY name = %(text)s DESC LIMIT 1;

-- name: lock_rule
SELECT * FROM alert_rules WHERE id = %(id)s FOR UPDATE;

-- name: insert_rule
INSERT INTO alert_rules (name, condition, reach, product_id, canonical_product_id, dispensary_id, brand, category, search, state, platform,
       latitude, longitude, miles, amount, percent,
       option, price, hysteresis_percent, debounce_crawls, debounce_minutes, cooldown_minutes, digest, digest_at, timezone, on_existing,
       enabled, armed_at, created_at, updated_at)
VALUES (%(name)s, %(condition)s, %(reach)s, %(product_id)s, %(canonical_product_id)s, %(dispensary_id)s, %(brand)s, %(category)s, %(search)s,
       %(state)s, %(platform)s, %(latitude)s, %(longitude)s, %(miles)s, %(amount)s, %(percent)s, %(option)s, %(price)s, %(hysteresis_percent)s, %(debounce_crawls)s, %(debounce_minutes)s,
       %(cooldown_minutes)s, %(digest)s, %(digest_at)s, %(timezone)s, %(on_existing)s, %(enabled)s, %(now)s, %(now)s, %(now)s)
    ON CONFLICT (name) DO NOTHING
RETURNING *;

-- name: update_rule
UPDATE alert_rules SET name = %(name)s, condition = %(condition)s, reach = %(reach)s, product_id = %(product_id)s,
       canonical_product_id = %(canonical_product_id)s, latitude = %(latitude)s, longitude = %(longitude)s, miles = %(miles)s,
       dispensary_id = %(dispensary_id)s, brand = %(brand)s, category = %(category)s, search = %(search)s, state = %(state)s,
       platform = %(platform)s, amount = %(amount)s, percent = %(percent)s, option = %(option)s, price = %(price)s,
       hysteresis_percent = %(hysteresis_percent)s, debounce_crawls = %(debounce_crawls)s, debounce_minutes = %(debounce_minutes)s,
       cooldown_minutes = %(cooldown_minutes)s, digest = %(digest)s, digest_at = %(digest_at)s, timezone = %(timezone)s,
       on_existing = %(on_existing)s, enabled = %(enabled)s, armed_at = %(armed_at)s,
       muted_until = %(muted_until)s, holds = holds AND armed_at = %(armed_at)s,
       unlike_since = CASE WHEN armed_at = %(armed_at)s THEN unlike_since END,
       read_at = CASE WHEN armed_at = %(armed_at)s THEN read_at END, updated_at = %(now)s
 WHERE id = %(id)s RETURNING *;

-- name: remove_rule
DELETE FROM alert_rules WHERE id = %(id)s;

-- name: insert_channel
INSERT INTO alert_channels (rule_id, kind, address, secret, shown) VALUES (%(rule_id)s, %(kind)s, %(address)s, %(secret)s, %(shown)s);

-- name: remove_channels
DELETE FROM alert_channels WHERE rule_id = %(rule_id)s;

-- name: channels
SELECT id, rule_id, kind, address, secret, shown FROM alert_channels WHERE rule_id = ANY (%(rules)s::integer[]) ORDER BY id;

-- name: all_channels
-- In the order in which everybody locks them.
SELECT id, rule_id, kind, address, secret, shown FROM alert_channels ORDER BY id FOR NO KEY UPDATE;

-- name: save_channels
UPDATE alert_channels c SET address = n.address, secret = n.secret
  FROM unnest(%(ids)s::integer[], %(addresses)s::text[], %(secrets)s::text[]) n(id, address, secret) WHERE c.id = n.id;

-- name: channel
SELECT id, rule_id, kind, address, secret, shown FROM alert_channels WHERE id = %(id)s;

-- name: due_events
-- Due events, the rules that have waited longest first. Rules that another process is handling are skipped.
WITH r AS (
  SELECT a.id FROM alert_rules a
    JOIN (SELECT rule_id, min(due_at) AS since FROM alert_events WHERE NOT notified AND due_at <= %(now)s GROUP BY rule_id) w ON w.rule_id = a.id
   ORDER BY w.since, a.id LIMIT %(rules)s FOR NO KEY UPDATE OF a SKIP LOCKED
)
SELECT e.id, e.rule_id, e.fired_at, e.facts::text FROM r CROSS JOIN LATERAL (
  SELECT * FROM alert_events e WHERE e.rule_id = r.id AND NOT e.notified AND e.due_at <= %(now)s ORDER BY e.id LIMIT %(most)s) e
 ORDER BY e.rule_id, e.id;

-- name: mark_notified
UPDATE alert_events SET notified = true, muted = rule_id = ANY (%(muted)s::integer[]) WHERE id = ANY (%(ids)s::bigint[]);

-- name: insert_delivery
INSERT INTO alert_deliveries (rule_id, channel_id, channel, kind, event_ids, payload, next_attempt_at, created_at)
VALUES (%(rule_id)s, %(channel_id)s, %(channel)s, %(kind)s, %(event_ids)s, %(payload)s, %(now)s, %(now)s) RETURNING id;

-- name: record_rule_failure
-- There is no message, so nothing can be sent again: a delivery without a channel is not replayed.
INSERT INTO alert_deliveries (rule_id, channel, kind, event_ids, payload, status, error, created_at)
SELECT r.id, 'none', 'alert', %(events)s::bigint[], '{}', 'failed', %(error)s, %(now)s FROM alert_rules r
 WHERE r.id = ANY (%(rules)s::integer[])
   AND (%(events)s::bigint[] <> '{}' OR NOT EXISTS (
     SELECT FROM alert_deliveries d WHERE d.rule_id = r.id AND d.channel_id IS NULL AND d.event_ids = '{}' AND d.status = 'failed'
        AND d.created_at > %(now)s::timestamptz - interval '1 day'));

-- name: lease_due
-- Leases messages to send now. If the sender dies, the lease expires and the message is sent again.
UPDATE alert_deliveries d SET status = 'sending', attempts = attempts + 1, next_attempt_at = %(now)s + make_interval(secs => %(lease_seconds)s)
  FROM (SELECT id FROM alert_deliveries WHERE status IN ('waiting', 'sending') AND next_attempt_at <= %(now)s
           AND (%(only)s::bigint[] IS NULL OR id = ANY (%(only)s))
         ORDER BY next_attempt_at LIMIT %(n)s FOR UPDATE SKIP LOCKED) due
 WHERE d.id = due.id
RETURNING d.id, d.rule_id, d.channel_id, d.channel, d.kind, d.key::text, d.payload::text, d.attempts, d.replays;

-- name: delivered
UPDATE alert_deliveries SET status = 'delivered', next_attempt_at = NULL, response_code = %(code)s, error = NULL, delivered_at = %(now)s,
       tries = tries || %(try)s::jsonb
 WHERE id = %(id)s AND status = 'sending' AND attempts = %(attempts)s;

-- name: not_delivered
UPDATE alert_deliveries SET status = CASE WHEN %(again_at)s::timestamptz IS NULL THEN 'failed' ELSE 'waiting' END,
       next_attempt_at = %(again_at)s, response_code = %(code)s, error = %(error)s, tries = tries || %(try)s::jsonb
 WHERE id = %(id)s AND status = 'sending' AND attempts = %(attempts)s;

-- name: next_due
SELECT extract(epoch FROM least((SELECT min(next_attempt_at) FROM alert_deliveries WHERE status IN ('waiting', 'sending')),
                                (SELECT min(due_at) FROM alert_events WHERE NOT notified)) - %(now)s)::double precision;

-- name: replay
UPDATE alert_deliveries SET status = 'waiting', attempts = 0, replays = replays + 1, next_attempt_at = %(now)s, error = NULL
 WHERE id = %(id)s AND status IN ('delivered', 'failed') AND channel_id IS NOT NULL RETURNING id;

-- name: due_operations
-- Rules about operations that were not read since `before`, claimed for this reading.
UPDATE alert_rules SET read_at = %(now)s
 WHERE id IN (SELECT id FROM alert_rules WHERE enabled AND reach = 'operations' AND (read_at IS NULL OR read_at <= %(before)s)
               ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)
RETURNING *;

-- name: save_holds
UPDATE alert_rules SET holds = %(holds)s, unlike_since = %(unlike_since)s WHERE id = %(id)s;

-- piece: latest_circuits
-- The latest event of these rules for each host.
SELECT DISTINCT ON (e.rule_id, e.facts ->> 'host') e.id, e.rule_id, e.facts ->> 'host' AS host, (e.facts -> 'firing')::boolean AS firing,
       e.fired_at
  FROM alert_events e JOIN alert_rules r ON r.id = e.rule_id AND e.fired_at > r.armed_at
 WHERE e.rule_id = ANY (%(rules)s::integer[]) ORDER BY e.rule_id, e.facts ->> 'host', e.id DESC

-- name: opened_circuits
-- The first opening of each host since a rule was armed or the host recovered: what opens again meanwhile is the same outage.
SELECT DISTINCT ON (r.id, e.host) r.id AS rule_id, 'circuit/' || e.id AS source, e.host, e.reason, e.until, e.happened_at
  FROM alert_rules r
  JOIN host_events e ON e.kind = 'circuit_opened' AND e.happened_at > r.armed_at AND e.happened_at > %(now)s::timestamptz - interval '1 day'
  LEFT JOIN ({latest_circuits}) l ON l.rule_id = r.id AND l.host = e.host
 WHERE r.id = ANY (%(rules)s::integer[]) AND (l.id IS NULL OR (NOT l.firing AND e.happened_at > l.fired_at))
 ORDER BY r.id, e.host, e.id;

-- name: closed_circuits
-- Hosts that rules reported, and whose circuit has been closed for some time.
SELECT l.rule_id, 'circuit/' || l.id || '/closed' AS source, l.host
  FROM ({latest_circuits}) l JOIN hosts h ON h.host = l.host AND h.circuit = 'closed'
 WHERE l.firing AND NOT EXISTS (SELECT FROM host_events e WHERE e.host = l.host AND e.kind = 'circuit_opened' AND e.happened_at > %(before)s);

-- name: prune
WITH e AS (DELETE FROM alert_events WHERE notified AND fired_at < %(before)s RETURNING 1),
d AS (DELETE FROM alert_deliveries WHERE created_at < %(before)s AND status IN ('delivered', 'failed') RETURNING 1)
SELECT (SELECT count(*) FROM e) + (SELECT count(*) FROM d);
