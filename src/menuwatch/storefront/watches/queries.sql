-- Watches of shoppers and their events.

-- piece: watch_columns
w.id, w.channel, w.address, w.token, w.subject, w.item_id, w.brand_id, (SELECT query FROM watched_searches WHERE id = w.search_id) AS query, w.size,
w.store_id, w.place, w.latitude, w.longitude, w.miles, w.condition, w.currency, w.amount, w.phase, w.reference, w.fired_at, w.created_at, w.confirmed_at, w.sent_at,
w.attempts, w.ends_at

-- name: insert
INSERT INTO price_watches (token_hash, channel, address, token, address_mark, subject, item_id, brand_id, search_id, size, store_id, place, latitude,
       longitude, miles, condition, currency, amount, phase, reference, created_at, confirmed_at, due_at, ends_at)
VALUES (%(token_hash)s, %(channel)s, %(address)s, %(token)s, %(address_mark)s, %(subject)s, %(item_id)s, %(brand_id)s, %(search_id)s, %(size)s,
       %(store_id)s, %(place)s, %(latitude)s, %(longitude)s, %(miles)s, %(condition)s, %(currency)s, %(amount)s, %(phase)s, %(reference)s, %(now)s,
       %(confirmed_at)s, %(due_at)s, %(ends_at)s)
RETURNING id;

-- name: put_search
-- The number of a watched search. An equal search takes the values of the latest request: names of brands may have changed.
INSERT INTO watched_searches (query, words, category, brands, strains, sizes, in_stock, special, price_min, price_max, per_gram_max, thc_min, thc_max)
VALUES (%(query)s, %(words)s::tsquery, %(category)s, %(brands)s, %(strains)s, %(sizes)s, %(in_stock)s, %(special)s, %(price_min)s, %(price_max)s,
       %(per_gram_max)s, %(thc_min)s, %(thc_max)s)
    ON CONFLICT (query) DO UPDATE SET words = excluded.words, brands = excluded.brands
RETURNING id;

-- name: mark
-- The hash that stands for an address.
SELECT sha256(value || convert_to(%(address)s::text, 'UTF8')) FROM app_secrets WHERE name = 'watch_addresses';

-- name: hold_mark
-- Requests for the same address wait for each other, so that both are counted.
SELECT pg_advisory_xact_lock(hashtext('price_watches.address_mark'), hashtext(encode(%(mark)s::bytea, 'hex')));

-- name: counts
-- Watches of an address, its unconfirmed ones, and all unconfirmed ones of the last hour.
SELECT count(*) AS watches, count(*) FILTER (WHERE confirmed_at IS NULL) AS unconfirmed,
       (SELECT count(*) FROM price_watches WHERE confirmed_at IS NULL AND created_at > %(now)s::timestamptz - interval '1 hour') AS of_all
  FROM price_watches WHERE address_mark = %(mark)s;

-- name: by_token
SELECT {watch_columns} FROM price_watches w WHERE w.token_hash = %(hash)s;

-- name: of_items
-- A batch of watches of the states of items that the store may concern, locked until the results are written. The position of a store that is no
-- longer visible is unknown, so all watches around a place are included.
SELECT w.id, w.item_id, w.size, w.store_id, w.latitude, w.longitude, w.miles, w.condition, w.currency, w.amount, w.phase, w.reference, w.fired_at
  FROM price_watches w
 WHERE w.subject = 'item' AND w.condition <> 'new_deal'
   AND w.item_id = ANY (%(items)s::bigint[]) AND w.confirmed_at IS NOT NULL AND (w.store_id IS NULL OR w.store_id = %(store_id)s)
   AND (w.miles IS NULL OR (SELECT s.latitude IS NULL OR distance_meters(s.latitude, s.longitude, w.latitude, w.longitude) <= w.miles * 1609.344
                              FROM storefront_stores s WHERE s.dispensary_id = %(store_id)s) IS NOT false)
   AND w.id > %(after)s
 ORDER BY w.id LIMIT %(most)s FOR NO KEY UPDATE OF w;

-- name: confirm
UPDATE price_watches SET confirmed_at = %(now)s, phase = %(phase)s, reference = %(reference)s, due_at = NULL, attempts = 0
 WHERE id = %(id)s AND confirmed_at IS NULL;

-- name: save_states
-- States of several watches.
UPDATE price_watches w SET phase = n.phase, reference = n.reference, fired_at = n.fired_at
  FROM unnest(%(ids)s::bigint[], %(phases)s::text[], %(references)s::numeric[], %(fired)s::timestamptz[]) n(id, phase, reference, fired_at)
 WHERE w.id = n.id;

-- name: add_events
WITH e AS (
  INSERT INTO price_watch_events (watch_id, happened_at, facts)
  SELECT n.id, %(now)s, n.facts::jsonb FROM unnest(%(ids)s::bigint[], %(facts)s::text[]) n(id, facts) ON CONFLICT DO NOTHING RETURNING watch_id)
UPDATE price_watches w
   SET due_at = coalesce(least(w.due_at, greatest(%(now)s, w.sent_at + make_interval(secs => p.pace))),
                         greatest(%(now)s, w.sent_at + make_interval(secs => p.pace)))
  FROM e, unnest(%(channels)s::text[], %(paces)s::double precision[]) p(channel, pace)
 WHERE w.id = e.watch_id AND w.channel = p.channel;

-- name: end
DELETE FROM price_watches WHERE token_hash = %(hash)s;

-- name: remove
DELETE FROM price_watches WHERE id = %(id)s;

-- name: events
SELECT id, watch_id, happened_at, facts FROM price_watch_events WHERE watch_id = %(id)s ORDER BY happened_at DESC LIMIT %(limit)s;

-- name: unsent_events
SELECT id, watch_id, happened_at, facts FROM price_watch_events WHERE watch_id = %(id)s AND NOT notified ORDER BY happened_at LIMIT %(limit)s;

-- name: lease_due
-- Leases messages to send now. If the sender dies, the lease expires and the message is sent again.
UPDATE price_watches w SET attempts = attempts + 1, due_at = %(now)s::timestamptz + make_interval(secs => %(lease_seconds)s)
  FROM (SELECT id FROM price_watches WHERE due_at <= %(now)s AND channel = ANY (%(channels)s::text[])
         ORDER BY due_at LIMIT %(n)s FOR UPDATE SKIP LOCKED) due
 WHERE w.id = due.id
RETURNING {watch_columns};

-- name: lock
SELECT FROM price_watches WHERE id = %(id)s FOR NO KEY UPDATE;

-- name: sent
WITH sent AS (UPDATE price_watch_events SET notified = true WHERE id = ANY (%(events)s::bigint[]))
UPDATE price_watches w
   SET sent_at = %(now)s, attempts = 0,
       due_at = CASE WHEN EXISTS (SELECT FROM price_watch_events e WHERE e.watch_id = w.id AND NOT e.notified AND e.id <> ALL (%(events)s::bigint[]))
                     THEN %(now)s::timestamptz + make_interval(secs => %(pace)s) END
 WHERE w.id = %(id)s;

-- name: not_sent
UPDATE price_watches SET due_at = %(again_at)s WHERE id = %(id)s;

-- name: was_used
-- A watch lives on. It is written once a day, however often it is used.
UPDATE price_watches SET ends_at = %(ends_at)s WHERE id = %(id)s AND ends_at < %(ends_at)s::timestamptz - interval '1 day';

-- name: names
-- The names of what a watch is about; of a merged brand that of the present one. `state`: of the store, or of the item's cheapest offer.
SELECT (SELECT name FROM storefront_items WHERE id = %(item_id)s) AS item, (SELECT name FROM brands WHERE id = live_brand(%(brand_id)s)) AS brand,
       (SELECT d.name FROM storefront_stores s JOIN dispensaries d ON d.id = s.dispensary_id WHERE d.id = %(store_id)s) AS store,
       (SELECT d.state FROM dispensaries d
         WHERE d.id = coalesce(%(store_id)s, (SELECT o.store_id FROM storefront_offers o WHERE o.item_id = %(item_id)s
                                               ORDER BY o.in_stock IS false, o.price NULLS LAST, o.product_id LIMIT 1))) AS state;

-- name: usual_currency
-- The currency of most stores on the site.
SELECT currency_of(d.state) AS currency FROM storefront_stores s JOIN dispensaries d ON d.id = s.dispensary_id
 GROUP BY 1 ORDER BY count(*) DESC, 1 DESC LIMIT 1;

-- name: push_key
-- The private key of web push, as it is stored.
SELECT convert_from(value, 'UTF8') AS key FROM app_secrets WHERE name = 'web_push';

-- name: put_push_key
INSERT INTO app_secrets (name, value) VALUES ('web_push', convert_to(%(key)s, 'UTF8')) ON CONFLICT DO NOTHING;

-- name: prune
-- Unconfirmed watches, and those that are not used, are deleted; events that were sent are kept for a while.
WITH u AS (DELETE FROM price_watches WHERE confirmed_at IS NULL AND created_at < %(unconfirmed)s RETURNING 1),
f AS (DELETE FROM price_watches WHERE ends_at < %(now)s RETURNING 1),
e AS (DELETE FROM price_watch_events WHERE happened_at < %(events)s RETURNING 1),
s AS (DELETE FROM watched_searches s WHERE NOT EXISTS (SELECT FROM price_watches w WHERE w.search_id = s.id) RETURNING 1)
SELECT (SELECT count(*) FROM u) + (SELECT count(*) FROM f) + (SELECT count(*) FROM e);
