-- What changed: newest first, and in the order in which crawls were taken in. A page is cut before anything is built for it.

-- piece: change_filter
change_is(%(kind)s::text, c.price_changed, c.stock_changed,
             effective_price(c.price_rec_before, c.price_rec_special_before, c.price_med_before, c.price_med_special_before),
             effective_price(c.price_rec_after, c.price_rec_special_after, c.price_med_after, c.price_med_special_after),
             c.stock_status_before, c.stock_status_after)
   AND (%(percent)s::numeric IS NULL
        OR abs(effective_price(c.price_rec_after, c.price_rec_special_after, c.price_med_after, c.price_med_special_after)
               - effective_price(c.price_rec_before, c.price_rec_special_before, c.price_med_before, c.price_med_special_before)) * 100
           >= %(percent)s * effective_price(c.price_rec_before, c.price_rec_special_before, c.price_med_before, c.price_med_special_before))

-- name: newest
-- `store` is the one of `stores` where they are no more: the index of a store's history has its order.
SELECT c.product_id, c.changed_at
  FROM product_changes c
  JOIN catalog_products p ON p.id = c.product_id
  JOIN dispensaries d ON d.id = c.dispensary_id
 WHERE (%(store)s::integer IS NULL OR c.dispensary_id = %(store)s)
   AND (%(stores)s::integer[] IS NULL OR c.dispensary_id = ANY (%(stores)s))
   AND (%(products)s::bigint[] IS NULL OR c.product_id = ANY (%(products)s))
   AND (%(states)s::text[] IS NULL OR d.state = ANY (%(states)s))
   AND (%(categories)s::text[] IS NULL OR p.category_canon = ANY (%(categories)s))
   AND (%(brands)s::text[] IS NULL
        OR c.product_id = ANY (ARRAY (SELECT b.id FROM catalog_products b WHERE lower(b.brand_name) = ANY (%(brands)s))))
   AND (%(brands_of_many)s::text[] IS NULL OR lower(p.brand_name) = ANY (%(brands_of_many)s))
   AND (%(listings)s::bigint[] IS NULL OR c.product_id = ANY (%(listings)s))
   AND (%(listings_of_many)s::bigint[] IS NULL OR c.product_id + 0 = ANY (%(listings_of_many)s))
   AND (%(since)s::timestamptz IS NULL OR c.changed_at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR c.changed_at < %(until)s)
   AND (%(after_at)s::timestamptz IS NULL OR (c.changed_at, c.product_id) < (%(after_at)s, %(after_id)s::bigint))
   AND (%(after_at)s IS NULL OR c.changed_at <= %(after_at)s)
   AND {change_filter}
 ORDER BY c.changed_at DESC, c.product_id DESC LIMIT %(limit)s;

-- name: reach
-- The date of the change that many changes before `until` (null: the newest), by the index alone.
SELECT ended_at AS at FROM product_history
 WHERE (%(until)s::timestamptz IS NULL OR ended_at <= %(until)s) ORDER BY ended_at DESC OFFSET %(n)s LIMIT 1;

-- name: more_of_brands
-- Whether these brands have more than `n` products: of a large catalog as maintenance counted them last, which decides how changes are
-- looked for, not which there are.
SELECT CASE WHEN EXISTS (SELECT FROM catalog_totals WHERE kind = 'brand')
            THEN coalesce((SELECT sum(t.products) FROM catalog_totals t WHERE t.kind = 'brand' AND lower(t.name) = ANY (%(brands)s::text[])), 0) > %(n)s
            ELSE EXISTS (SELECT FROM catalog_products WHERE lower(brand_name) = ANY (%(brands)s) OFFSET %(n)s) END AS found;

-- name: any_store_in
SELECT EXISTS (SELECT FROM dispensaries WHERE state = ANY (%(states)s::text[])) AS found;

-- name: price_trends
-- Each table by its own index: the history by product and end, the present states by id.
SELECT o.product_id, greatest(o.seen_from, %(since)s) AS at,
       effective_price(o.price_rec, o.price_rec_special, o.price_med, o.price_med_special) AS price
  FROM product_history o
 WHERE o.product_id = ANY (%(ids)s::bigint[]) AND o.ended_at >= %(since)s::timestamptz AND o.present
   AND effective_price(o.price_rec, o.price_rec_special, o.price_med, o.price_med_special) IS NOT NULL
 UNION ALL
SELECT p.id, greatest(p.state_from, %(since)s), effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special)
  FROM catalog_products p
 WHERE p.id = ANY (%(ids)s::bigint[]) AND p.present
   AND effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special) IS NOT NULL
 ORDER BY 1, 2;

-- name: number_crawls
SELECT number_crawls();

-- name: last_position
-- Both kinds of rows are read up to here: what is numbered while they are read belongs to a later page.
SELECT coalesce(greatest((SELECT max(position) FROM crawl_feed), (SELECT max(position) FROM match_events)), 0) AS position;

-- name: crawls_fed
-- The next crawls of the feed that changed anything, from the one at `position` on: some of its products may not have been given yet.
SELECT f.position, f.dispensary_id, f.crawled_at
  FROM crawl_feed f
  JOIN store_crawls c ON c.dispensary_id = f.dispensary_id AND c.crawled_at = f.crawled_at
  JOIN dispensaries d ON d.id = f.dispensary_id
 WHERE f.position >= %(position)s::bigint AND f.position <= %(last)s::bigint
   AND CASE WHEN %(kind)s::text LIKE 'price%%' THEN c.price_changes > 0 WHEN %(kind)s IS NULL THEN c.price_changes > 0 OR c.stock_changes > 0
            ELSE c.stock_changes > 0 END
   AND (%(stores)s::integer[] IS NULL OR f.dispensary_id = ANY (%(stores)s))
   AND (%(states)s::text[] IS NULL OR d.state = ANY (%(states)s))
   AND (%(since)s::timestamptz IS NULL OR f.crawled_at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR f.crawled_at < %(until)s)
 ORDER BY f.position LIMIT %(limit)s;

-- name: fed
-- Changes of these crawls, in their order.
SELECT k.position, c.product_id, c.changed_at
  FROM unnest(%(positions)s::bigint[], %(dispensaries)s::integer[], %(times)s::timestamptz[]) k(position, dispensary_id, crawled_at)
 CROSS JOIN LATERAL (
    SELECT c.product_id, c.changed_at
      FROM product_changes c JOIN catalog_products p ON p.id = c.product_id
     WHERE c.dispensary_id = k.dispensary_id AND c.changed_at = k.crawled_at
       AND (k.position > %(after_position)s::bigint OR c.product_id > %(after_id)s::bigint)
       AND (%(categories)s::text[] IS NULL OR p.category_canon = ANY (%(categories)s))
       AND (%(brands)s::text[] IS NULL OR lower(p.brand_name) = ANY (%(brands)s))
       AND (%(listings)s::bigint[] IS NULL OR c.product_id = ANY (%(listings)s))
       AND {change_filter}
     ORDER BY c.product_id LIMIT %(limit)s) c
 ORDER BY k.position, c.product_id LIMIT %(limit)s;

-- name: in_full
-- These changes, in the order given.
SELECT c.product_id, c.dispensary_id, d.name AS store, d.state, c.provider_product_id, c.name, c.brand_name, c.category, p.category_canon, c.changed_at,
       c.price_changed, c.stock_changed, c.present,
       json_build_object(
         'price', effective_price(c.price_rec_before, c.price_rec_special_before, c.price_med_before, c.price_med_special_before),
         'price_rec', c.price_rec_before, 'price_rec_special', c.price_rec_special_before,
         'price_med', c.price_med_before, 'price_med_special', c.price_med_special_before,
         'prices', prices_by_option(c.prices_before),
         'stock_status', c.stock_status_before, 'quantity', c.quantity_before,
         'stock', stock_by_option(c.stock_before)) AS before,
       json_build_object(
         'price', effective_price(c.price_rec_after, c.price_rec_special_after, c.price_med_after, c.price_med_special_after),
         'price_rec', c.price_rec_after, 'price_rec_special', c.price_rec_special_after,
         'price_med', c.price_med_after, 'price_med_special', c.price_med_special_after,
         'prices', prices_by_option(c.prices_after),
         'stock_status', c.stock_status_after, 'quantity', c.quantity_after,
         'stock', stock_by_option(c.stock_after)) AS after,
       i.canonical_product_id, i.brand_id, l.location_id
  FROM unnest(%(ids)s::bigint[], %(times)s::timestamptz[]) WITH ORDINALITY k(id, at, place)
  JOIN product_changes c ON c.product_id = k.id AND c.changed_at = k.at
  JOIN catalog_products p ON p.id = k.id
  JOIN dispensaries d ON d.id = c.dispensary_id
  LEFT JOIN product_identities i ON i.product_id = c.product_id
  LEFT JOIN store_locations l ON l.dispensary_id = c.dispensary_id
 ORDER BY k.place;

-- name: why_empty
-- What can be why there are no changes: no store, or none that was crawled twice (the first crawl of a store changes nothing).
SELECT NOT EXISTS (SELECT FROM dispensaries WHERE state = ANY (%(states)s::text[])) AS no_stores,
       EXISTS (SELECT FROM dispensaries d JOIN store_crawls c ON c.dispensary_id = d.id AND c.crawled_at < d.last_crawled_at
                WHERE (%(stores)s::integer[] IS NULL OR d.id = ANY (%(stores)s)) AND (%(states)s::text[] IS NULL OR d.state = ANY (%(states)s)))
    AS known;
