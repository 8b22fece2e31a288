-- Watches of shoppers, and what was found for them.

-- name: insert
INSERT INTO shop_watches (token_hash, kind, address, token, address_mark, item_id, store_id, place, latitude, longitude, miles, condition,
       amount, phase, reference, created_at, confirmed_at, mail_due_at, ends_at)
VALUES (%(token_hash)s, %(kind)s, %(address)s, %(token)s, %(address_mark)s, %(item_id)s, %(store_id)s, %(place)s, %(latitude)s, %(longitude)s,
       %(miles)s, %(condition)s, %(amount)s, %(phase)s, %(reference)s, %(now)s, %(confirmed_at)s, %(mail_due_at)s, %(ends_at)s)
RETURNING id;

-- name: mark
-- What stands for an address, whoever asks.
SELECT sha256(convert_to(pepper || lower(%(address)s::text), 'UTF8')) FROM shop_pepper;

-- name: hold_mark
-- Who asks for an address waits for whoever asks for the same one, so that both are counted.
SELECT pg_advisory_xact_lock(hashtext('shop_watches.address_mark'), hashtext(encode(%(mark)s::bytea, 'hex')));

-- name: counts
-- How many watches an address has, how many of them it has not confirmed, and how many nobody has in the last hour.
SELECT count(*) AS watches, count(*) FILTER (WHERE confirmed_at IS NULL) AS unconfirmed,
       (SELECT count(*) FROM shop_watches WHERE confirmed_at IS NULL AND created_at > %(now)s::timestamptz - interval '1 hour') AS of_all
  FROM shop_watches WHERE address_mark = %(mark)s;

-- name: by_token
SELECT id, kind, address, token, item_id, store_id, place, latitude, longitude, miles, condition, amount, phase, reference, fired_at, created_at,
       confirmed_at, mailed_at, attempts, ends_at
  FROM shop_watches WHERE token_hash = %(hash)s;

-- name: of_items
-- Those that may be about what a store has, some at a time, each kept from ending until what is found is written. Of a store that is
-- shown no more nobody knows where it was, so all that look around a place are looked at.
SELECT w.id, w.item_id, w.store_id, w.latitude, w.longitude, w.miles, w.condition, w.amount, w.phase, w.reference, w.fired_at
  FROM shop_watches w
 WHERE w.item_id = ANY (%(items)s::bigint[]) AND w.confirmed_at IS NOT NULL AND (w.store_id IS NULL OR w.store_id = %(store_id)s)
   AND (w.miles IS NULL OR (SELECT s.latitude IS NULL OR shop_meters(s.latitude, s.longitude, w.latitude, w.longitude) <= w.miles * 1609.344
                              FROM shop_stores s WHERE s.dispensary_id = %(store_id)s) IS NOT false)
   AND w.id > %(after)s
 ORDER BY w.id LIMIT %(most)s FOR NO KEY UPDATE OF w;

-- name: confirm
UPDATE shop_watches SET confirmed_at = %(now)s, phase = %(phase)s, reference = %(reference)s, mail_due_at = NULL, attempts = 0
 WHERE id = %(id)s AND confirmed_at IS NULL;

-- name: stand
-- Where watches stand, all at once.
UPDATE shop_watches w SET phase = n.phase, reference = n.reference, fired_at = n.fired_at
  FROM unnest(%(ids)s::bigint[], %(phases)s::text[], %(references)s::numeric[], %(fired)s::timestamptz[]) n(id, phase, reference, fired_at)
 WHERE w.id = n.id;

-- name: tell
WITH e AS (
  INSERT INTO shop_watch_events (watch_id, happened_at, facts)
  SELECT n.id, %(now)s, n.facts::jsonb FROM unnest(%(ids)s::bigint[], %(facts)s::text[]) n(id, facts) ON CONFLICT DO NOTHING RETURNING watch_id)
UPDATE shop_watches w
   SET mail_due_at = coalesce(least(w.mail_due_at, greatest(%(now)s, w.mailed_at + make_interval(secs => %(pace)s))),
                              greatest(%(now)s, w.mailed_at + make_interval(secs => %(pace)s)))
  FROM e WHERE w.id = e.watch_id AND w.kind = 'mail';

-- name: end
DELETE FROM shop_watches WHERE token_hash = %(hash)s;

-- name: remove
DELETE FROM shop_watches WHERE id = %(id)s;

-- name: events
SELECT id, watch_id, happened_at, facts FROM shop_watch_events WHERE watch_id = %(id)s ORDER BY happened_at DESC LIMIT %(limit)s;

-- name: untold
SELECT id, watch_id, happened_at, facts FROM shop_watch_events WHERE watch_id = %(id)s AND NOT told ORDER BY happened_at LIMIT %(limit)s;

-- name: take_due
-- Mails to send now. Whoever takes one holds it for a while: if they die, it is sent again.
UPDATE shop_watches w SET attempts = attempts + 1, mail_due_at = %(now)s::timestamptz + make_interval(secs => %(hold)s)
  FROM (SELECT id FROM shop_watches WHERE mail_due_at <= %(now)s ORDER BY mail_due_at LIMIT %(n)s FOR UPDATE SKIP LOCKED) due
 WHERE w.id = due.id
RETURNING w.id, w.kind, w.address, w.token, w.item_id, w.store_id, w.place, w.latitude, w.longitude, w.miles, w.condition, w.amount, w.phase,
       w.reference, w.fired_at, w.created_at, w.confirmed_at, w.mailed_at, w.attempts, w.ends_at;

-- name: lock
SELECT FROM shop_watches WHERE id = %(id)s FOR NO KEY UPDATE;

-- name: mailed
WITH told AS (UPDATE shop_watch_events SET told = true WHERE id = ANY (%(events)s::bigint[]))
UPDATE shop_watches w
   SET mailed_at = %(now)s, attempts = 0,
       mail_due_at = CASE WHEN EXISTS (SELECT FROM shop_watch_events e WHERE e.watch_id = w.id AND NOT e.told AND e.id <> ALL (%(events)s::bigint[]))
                          THEN %(now)s::timestamptz + make_interval(secs => %(pace)s) END
 WHERE w.id = %(id)s;

-- name: not_mailed
UPDATE shop_watches SET mail_due_at = %(again_at)s WHERE id = %(id)s;

-- name: was_read
-- A feed lives on. It is written once a day, however often it is read.
UPDATE shop_watches SET ends_at = %(ends_at)s WHERE id = %(id)s AND kind = 'feed' AND ends_at < %(ends_at)s::timestamptz - interval '1 day';

-- name: prune
-- Whoever has not confirmed does not want it, nor does anybody a feed that nobody reads; what was told is kept for a while.
WITH u AS (DELETE FROM shop_watches WHERE confirmed_at IS NULL AND created_at < %(unconfirmed)s RETURNING 1),
f AS (DELETE FROM shop_watches WHERE ends_at < %(now)s RETURNING 1),
e AS (DELETE FROM shop_watch_events WHERE happened_at < %(events)s RETURNING 1)
SELECT (SELECT count(*) FROM u) + (SELECT count(*) FROM f) + (SELECT count(*) FROM e);
