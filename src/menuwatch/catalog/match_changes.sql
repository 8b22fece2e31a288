-- Merged and split canonical products, in the orders of the feed of changes.

-- piece: event_filter
(%(kind)s::text IS NULL OR e.kind = %(kind)s)
   AND (%(since)s::timestamptz IS NULL OR e.at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR e.at < %(until)s)
   AND (%(canonical_products)s::bigint[] IS NULL
        OR e.from_id = ANY (merged_canonical_products(%(canonical_products)s)) OR e.to_id = ANY (merged_canonical_products(%(canonical_products)s)))
   AND (%(brand_ids)s::integer[] IS NULL OR t.brand_id = ANY (merged_brands(%(brand_ids)s)) OR f.brand_id = ANY (merged_brands(%(brand_ids)s)))
   AND (%(categories)s::text[] IS NULL OR t.category = ANY (%(categories)s))
   AND (%(brands)s::text[] IS NULL
        OR EXISTS (SELECT FROM brands b WHERE b.id IN (t.brand_id, f.brand_id) AND lower(b.name) = ANY (%(brands)s)))

-- piece: from_events
FROM match_events e JOIN canonical_products f ON f.id = e.from_id JOIN canonical_products t ON t.id = e.to_id

-- name: newest
SELECT -e.id AS product_id, e.at AS changed_at
  {from_events}
 WHERE {event_filter}
   AND (%(after_at)s::timestamptz IS NULL OR (e.at <= %(after_at)s AND (e.at, -e.id) < (%(after_at)s, %(after_id)s::bigint)))
   AND (%(end_at)s::timestamptz IS NULL OR (e.at >= %(end_at)s AND (e.at, -e.id) > (%(end_at)s, %(end_id)s::bigint)))
 ORDER BY e.at DESC, e.id LIMIT %(limit)s;

-- name: fed
SELECT e.position, -e.id AS product_id, e.at AS changed_at
  {from_events}
 WHERE {event_filter}
   AND e.position > %(position)s::bigint AND e.position <= %(until_position)s::bigint
 ORDER BY e.position LIMIT %(limit)s;

-- name: in_full
-- Names and brand are those of now.
SELECT e.id, e.kind, e.at AS changed_at, e.from_id AS from_canonical_product_id, f.name AS from_name, e.to_id AS canonical_product_id, t.name,
       live_brand(t.brand_id) AS brand_id, (SELECT b.name FROM brands b WHERE b.id = live_brand(t.brand_id)) AS brand_name,
       t.category AS category_canon, e.listings, e.cause
  {from_events}
 WHERE e.id = ANY (%(ids)s::bigint[]);
