-- Facts that watches are evaluated on.

-- name: facts
-- Best price, stock and the store with that price for each item, or one size of it, within its scope, in the order of the input. Prices of
-- different currencies are not compared: offers in a currency other than the scope's do not count, or (`any_currency`) come after those of the same
-- stock in its currency.
-- A degree of latitude has more than 68 miles: the exact distance is computed only for stores that are near enough by that.
WITH o AS MATERIALIZED (
  SELECT o.item_id, o.store_id, o.product_id, o.price, o.in_stock, o.size, s.latitude, s.longitude, currency_of(d.state) AS currency
    FROM storefront_offers o LEFT JOIN dispensaries d ON d.id = o.store_id LEFT JOIN storefront_stores s ON s.dispensary_id = o.store_id
   WHERE o.item_id = ANY (%(items)s::bigint[])
), j AS (
  SELECT r.place, r.any_currency, o.product_id, o.store_id, o.price, o.in_stock, o.currency <> r.currency AS foreign_currency
    FROM unnest(%(items)s::bigint[], %(sizes)s::text[], %(stores)s::integer[], %(miles)s::integer[], %(latitudes)s::double precision[],
                %(longitudes)s::double precision[], %(currencies)s::text[], %(any_currency)s::boolean[])
         WITH ORDINALITY r(item_id, size, store_id, miles, latitude, longitude, currency, any_currency, place)
    LEFT JOIN o ON o.item_id = r.item_id AND (r.size IS NULL OR r.size = o.size) AND (r.store_id IS NULL OR o.store_id = r.store_id)
     AND (r.any_currency OR o.currency = r.currency)
     AND CASE WHEN r.miles IS NULL THEN true WHEN abs(o.latitude - r.latitude) * 68 > r.miles THEN false
              ELSE distance_meters(o.latitude, o.longitude, r.latitude, r.longitude) <= r.miles * 1609.344 END
), f AS (
  SELECT place, bool_or(in_stock) AS known, bool_or(product_id IS NOT NULL AND in_stock IS NULL) AS unsaid,
         coalesce(min(price) FILTER (WHERE in_stock), min(price) FILTER (WHERE in_stock IS NULL), min(price)) AS price, any_currency,
         (min(ARRAY[CASE WHEN in_stock THEN 0 WHEN in_stock IS NULL THEN 1 ELSE 2 END, foreign_currency::integer, coalesce(price, 2147483647),
                    product_id, store_id])) AS best
    FROM j GROUP BY place, any_currency
)
SELECT CASE WHEN f.known THEN 'in_stock' WHEN f.unsaid THEN 'unknown' ELSE 'oos' END AS stock,
       CASE WHEN f.any_currency THEN nullif(f.best[3], 2147483647) ELSE f.price END AS price, d.state,
       CASE WHEN d.id IS NOT NULL
            THEN jsonb_build_object('id', d.id, 'name', d.name, 'city', d.city, 'state', d.state, 'product_id', f.best[4]) END AS store
  FROM f
  LEFT JOIN dispensaries d ON d.id = f.best[5]
 ORDER BY f.place;
