-- What is exported: the views for analysts, with the types that these have. The caller wraps these in a COPY that writes each column as its
-- format needs it. `since` and `until` are the span that was asked for; `part_from` and `part_until` cut it into files.

-- piece: chosen
-- Of the chosen stores.
(%(stores)s::integer[] IS NULL OR v.dispensary_id = ANY (%(stores)s))
   AND (%(states)s::text[] IS NULL OR v.state = ANY (%(states)s))
   AND (NOT %(stateless)s::boolean OR v.state IS NULL)
   AND (%(platforms)s::text[] IS NULL OR v.provider = ANY (%(platforms)s))

-- piece: chosen_menus
(%(stores)s::integer[] IS NULL OR d.id = ANY (%(stores)s))
   AND (%(states)s::text[] IS NULL OR d.state = ANY (%(states)s))
   AND (NOT %(stateless)s::boolean OR d.state IS NULL)
   AND (%(platforms)s::text[] IS NULL OR d.platform = ANY (%(platforms)s))

-- piece: every_menu
%(stores)s::integer[] IS NULL AND %(states)s::text[] IS NULL AND NOT %(stateless)s::boolean AND %(platforms)s::text[] IS NULL

-- name: products
SELECT v.* FROM analyst.products v
 WHERE {chosen}
   AND (%(since)s::timestamptz IS NULL OR v.updated_at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR v.updated_at < %(until)s);

-- name: offers
SELECT v.* FROM analyst.offers v
 WHERE {chosen}
   AND (%(since)s::timestamptz IS NULL OR v.updated_at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR v.updated_at < %(until)s);

-- name: stores
SELECT v.* FROM analyst.stores v JOIN dispensaries d ON d.id = v.dispensary_id
 WHERE {chosen_menus}
   AND (%(since)s::timestamptz IS NULL OR v.last_crawled_at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR v.last_crawled_at < %(until)s);

-- name: snapshots
SELECT v.* FROM analyst.snapshots v
 WHERE {chosen}
   AND (%(since)s::timestamptz IS NULL OR v.crawled_at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR (v.crawled_at < %(until)s AND v.state_since < %(until)s))
   AND (%(part_from)s::timestamptz IS NULL OR v.crawled_at >= %(part_from)s)
   AND (%(part_until)s::timestamptz IS NULL OR (v.crawled_at < %(part_until)s AND v.state_since < %(part_until)s));

-- name: states
-- The states that lasted at any time of the span; a file of a month has those that began in it.
SELECT v.* FROM analyst.states v
 WHERE {chosen}
   AND (%(since)s::timestamptz IS NULL OR v.seen_to IS NULL OR v.seen_to >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR v.seen_from < %(until)s)
   AND (%(part_from)s::timestamptz IS NULL OR v.seen_from >= %(part_from)s)
   AND (%(part_until)s::timestamptz IS NULL OR v.seen_from < %(part_until)s);

-- name: changes
SELECT v.* FROM analyst.changes v
 WHERE {chosen}
   AND (%(since)s::timestamptz IS NULL OR v.changed_at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR v.changed_at < %(until)s)
   AND (%(part_from)s::timestamptz IS NULL OR v.changed_at >= %(part_from)s)
   AND (%(part_until)s::timestamptz IS NULL OR v.changed_at < %(part_until)s);

-- name: details
-- Batches, lab values and sold counts that were current at any time of the span; a file of a month has those that began in it.
SELECT v.* FROM analyst.details v
 WHERE {chosen}
   AND (%(since)s::timestamptz IS NULL OR v.ended_at IS NULL OR v.ended_at > %(since)s)
   AND (%(until)s::timestamptz IS NULL OR v.seen_from < %(until)s)
   AND (%(part_from)s::timestamptz IS NULL OR v.seen_from >= %(part_from)s)
   AND (%(part_until)s::timestamptz IS NULL OR v.seen_from < %(part_until)s);

-- name: canonical_products
-- Merged ones as well: `merged_into` tells an older file's number what became of it. Of chosen stores: what they list.
SELECT v.* FROM analyst.canonical_products v
 WHERE (({every_menu})
        OR v.canonical_product_id IN (SELECT m.canonical_product_id FROM product_matches m JOIN dispensaries d ON d.id = m.dispensary_id
                                       WHERE {chosen_menus}))
   AND (%(since)s::timestamptz IS NULL OR v.changed_at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR v.changed_at < %(until)s);

-- name: brands
SELECT v.* FROM analyst.brands v
 WHERE (({every_menu})
        OR v.brand_id IN (SELECT live_brand(c.brand_id)
                            FROM product_matches m JOIN dispensaries d ON d.id = m.dispensary_id
                            JOIN canonical_products c ON c.id = m.canonical_product_id
                           WHERE {chosen_menus}))
   AND (%(since)s::timestamptz IS NULL OR v.created_at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR v.created_at < %(until)s);

-- name: locations
SELECT v.* FROM analyst.locations v
 WHERE (({every_menu})
        OR v.location_id IN (SELECT k.location_id FROM store_locations k JOIN dispensaries d ON d.id = k.dispensary_id WHERE {chosen_menus}))
   AND (%(since)s::timestamptz IS NULL OR v.changed_at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR v.changed_at < %(until)s);

-- name: product_matches
-- Every listing that was taken in; `confidence` and `reasons` are of the link by which it joined its product.
SELECT v.* FROM analyst.product_matches v JOIN dispensaries d ON d.id = v.dispensary_id
 WHERE {chosen_menus}
   AND (%(since)s::timestamptz IS NULL OR v.matched_at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR v.matched_at < %(until)s);

-- name: match_events
-- They are about no store: of chosen stores, those of what these list now.
SELECT v.* FROM analyst.match_events v
 WHERE (({every_menu})
        OR v.canonical_product_id IN (SELECT m.canonical_product_id FROM product_matches m JOIN dispensaries d ON d.id = m.dispensary_id
                                       WHERE {chosen_menus}))
   AND (%(since)s::timestamptz IS NULL OR v.at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR v.at < %(until)s);

-- name: states_of_stores
-- The states that the stores of an export lie in, for a file each; null where that is not known.
SELECT DISTINCT d.state FROM dispensaries d
 WHERE (%(stores)s::integer[] IS NULL OR d.id = ANY (%(stores)s))
   AND (%(states)s::text[] IS NULL OR d.state = ANY (%(states)s))
   AND EXISTS (SELECT FROM store_crawls c WHERE c.dispensary_id = d.id)
 ORDER BY 1;

-- name: months_of_crawls
-- The months, in UTC, in which the stores of an export were crawled: nothing changes in any other.
SELECT DISTINCT date_trunc('month', c.crawled_at, 'UTC') AS month
  FROM store_crawls c JOIN dispensaries d ON d.id = c.dispensary_id
 WHERE (%(stores)s::integer[] IS NULL OR d.id = ANY (%(stores)s))
   AND (%(states)s::text[] IS NULL OR d.state = ANY (%(states)s))
   AND (%(until)s::timestamptz IS NULL OR c.crawled_at < %(until)s)
 ORDER BY 1;

-- name: last_crawls
-- The last crawl of each store that was applied, as this snapshot sees it.
SELECT d.id, d.last_crawled_at FROM dispensaries d WHERE d.last_crawled_at IS NOT NULL AND {chosen_menus};

-- name: known_stores
SELECT id FROM dispensaries WHERE id = ANY (%(ids)s::integer[]);
