-- What a watch looks at.

-- name: facts
-- An item as it is where a watch looks: the best price, whether anybody has it, and who asks that price.
WITH o AS (
  SELECT o.store_id, o.product_id, o.price, o.in_stock
    FROM shop_offers o
    LEFT JOIN shop_stores s ON s.dispensary_id = o.store_id
   WHERE o.item_id = %(item_id)s AND (%(store_id)s::integer IS NULL OR o.store_id = %(store_id)s)
     AND (%(miles)s::integer IS NULL
          OR shop_meters(s.latitude, s.longitude, %(latitude)s::double precision, %(longitude)s::double precision) <= %(miles)s * 1609.344))
SELECT CASE WHEN bool_or(o.in_stock) THEN 'in_stock' WHEN bool_or(o.in_stock IS NULL) THEN 'unknown' ELSE 'oos' END AS stock,
       coalesce(min(o.price) FILTER (WHERE o.in_stock), min(o.price) FILTER (WHERE o.in_stock IS NULL), min(o.price)) AS price,
       count(DISTINCT o.store_id) FILTER (WHERE o.in_stock IS NOT false) AS stores,
       (SELECT jsonb_build_object('id', b.store_id, 'name', d.name, 'city', d.city, 'state', d.state, 'product_id', b.product_id)
          FROM o b JOIN dispensaries d ON d.id = b.store_id
         ORDER BY b.in_stock DESC NULLS LAST, b.price NULLS LAST, b.product_id LIMIT 1) AS store
  FROM o;
