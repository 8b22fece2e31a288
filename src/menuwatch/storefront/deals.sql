-- Deals and promotions: written with the offers of a store, and listed.

-- name: on_special
-- Products on the menu of a store that a special names, or that have a special price.
SELECT p.id, p.name, p.category_canon, p.variants, coalesce(p.specials, '[]') AS specials, p.is_in_stock
  FROM catalog_products p JOIN (SELECT DISTINCT product_id FROM storefront_offers WHERE store_id = %(store_id)s) o ON o.product_id = p.id
 WHERE p.specials IS NOT NULL OR jsonb_path_exists(p.variants, '$[*] ? (@.special_rec != null || @.special_med != null)');

-- name: known
SELECT product_id, size, store_id, price, regular, medical, special, ends FROM storefront_deals WHERE store_id = %(store_id)s OR product_id = ANY (%(products)s::bigint[]);

-- name: remove
DELETE FROM storefront_deals d USING unnest(%(products)s::bigint[], %(sizes)s::text[]) n(product_id, size)
 WHERE d.product_id = n.product_id AND d.size = n.size;

-- name: rename
-- What the menu says of specials whose prices stayed.
UPDATE storefront_deals d SET store_id = %(store_id)s, medical = n.medical, special = n.special, ends = n.ends
  FROM jsonb_to_recordset(%(rows)s::jsonb) n(product_id bigint, size text, medical boolean, special text, ends integer)
 WHERE d.product_id = n.product_id AND d.size = n.size;

-- name: put
INSERT INTO storefront_deals (product_id, size, store_id, price, regular, percent, medical, special, ends, began, observed_from, offered_until,
       lower_until)
SELECT n.product_id, n.size, %(store_id)s, n.price, n.regular, n.percent, n.medical, n.special, n.ends, n.began, n.observed_from, n.offered_until,
       n.lower_until
  FROM jsonb_to_recordset(%(rows)s::jsonb) n(product_id bigint, size text, price integer, regular integer, percent integer, medical boolean,
       special text, ends integer, began integer, observed_from timestamptz, offered_until timestamptz, lower_until timestamptz)
    ON CONFLICT (product_id, size) DO UPDATE SET store_id = excluded.store_id, price = excluded.price, regular = excluded.regular,
       percent = excluded.percent, medical = excluded.medical, special = excluded.special, ends = excluded.ends, began = excluded.began,
       observed_from = excluded.observed_from, offered_until = excluded.offered_until, lower_until = excluded.lower_until;

-- name: replace_promotions
WITH gone AS (DELETE FROM storefront_promotions WHERE store_id = %(store_id)s AND (name, kind) NOT IN (
         SELECT n.name, n.kind FROM jsonb_to_recordset(%(rows)s::jsonb) n(name text, kind text)))
INSERT INTO storefront_promotions (store_id, name, kind, products, of_products, value, required_quantity, reward_quantity, ends_at)
SELECT %(store_id)s, n.name, n.kind, n.products, (SELECT count(DISTINCT product_id) FROM storefront_offers WHERE store_id = %(store_id)s), n.value,
       n.required_quantity, n.reward_quantity, n.ends_at
  FROM jsonb_to_recordset(%(rows)s::jsonb) n(name text, kind text, products integer, value numeric, required_quantity integer, reward_quantity integer,
       ends_at timestamptz)
    ON CONFLICT (store_id, name, kind) DO UPDATE SET products = excluded.products, of_products = excluded.of_products, value = excluded.value,
       required_quantity = excluded.required_quantity, reward_quantity = excluded.reward_quantity, ends_at = excluded.ends_at
 WHERE (storefront_promotions.products, storefront_promotions.of_products, storefront_promotions.value, storefront_promotions.required_quantity,
        storefront_promotions.reward_quantity, storefront_promotions.ends_at)
       IS DISTINCT FROM (excluded.products, excluded.of_products, excluded.value, excluded.required_quantity, excluded.reward_quantity, excluded.ends_at);

-- name: savings
SELECT product_id, price, regular FROM storefront_deals
 WHERE product_id = ANY (%(products)s::bigint[]) AND offered_until > %(now)s::timestamptz - interval '90 days';

-- piece: candidates
-- The first deals in the requested order, those that menus say have ended left out. `saved` is the percentage, if the store really asked the
-- struck price within three months.
SELECT d.*, o.item_id, o.location_key, i.category, s.saved
  FROM storefront_deals d
  JOIN LATERAL (SELECT item_id, location_key FROM storefront_offers WHERE product_id = d.product_id LIMIT 1) o ON true
  JOIN storefront_items i ON i.id = o.item_id
 CROSS JOIN LATERAL (SELECT CASE WHEN d.offered_until > %(now)s::timestamptz - interval '90 days' AND d.percent BETWEEN 1 AND %(most_off)s
                                 THEN d.percent END AS saved) s
 WHERE (%(stores)s::integer[] IS NULL OR d.store_id = ANY (%(stores)s)) AND (d.ends IS NULL OR d.ends > extract(epoch FROM %(now)s::timestamptz))

-- name: deals
-- Deals, each product and size once: at the store where it costs least, of several the nearest.
WITH c AS MATERIALIZED (
  SELECT * FROM ({candidates}) x
   WHERE (%(category)s::text IS NULL OR x.category = %(category)s) AND (%(order)s <> 'off' OR x.saved IS NOT NULL)
     AND (%(order)s <> 'ending' OR x.ends IS NOT NULL)
   ORDER BY CASE %(order)s WHEN 'off' THEN -x.percent WHEN 'ending' THEN x.ends
                           ELSE -x.began END
   LIMIT %(most)s
), best AS (
  SELECT DISTINCT ON (c.item_id, c.size) c.*, n.meters, count(*) OVER (PARTITION BY c.item_id, c.size) AS listings
    FROM c LEFT JOIN unnest(%(stores)s::integer[], %(meters)s::integer[]) n(store_id, meters) ON n.store_id = c.store_id
   ORDER BY c.item_id, c.size, c.price, n.meters, c.product_id
)
SELECT b.product_id, b.item_id, i.name, br.name AS brand, br.slug AS brand_slug, b.category, i.strain, nullif(b.size, '') AS size, b.price, b.regular, b.saved,
       b.observed_from <= %(now)s::timestamptz - interval '90 days' AND b.saved IS NOT NULL
         AND (b.lower_until IS NULL OR b.lower_until < %(now)s::timestamptz - interval '90 days') AS lowest,
       b.special, to_timestamp(b.ends) AS ends_at, to_timestamp(b.began) AS began_at, b.medical, b.store_id, d.name AS store, d.city, d.state, d.timezone, d.last_crawled_at AS seen_at, b.meters,
       (SELECT count(DISTINCT c.location_key) FROM c WHERE c.item_id = b.item_id AND c.size = b.size) AS stores, p.local_image_path AS picture
  FROM best b
  JOIN storefront_items i ON i.id = b.item_id
  JOIN dispensaries d ON d.id = b.store_id
  JOIN catalog_products p ON p.id = b.product_id
  LEFT JOIN brands br ON br.id = i.brand_id
 ORDER BY CASE %(order)s WHEN 'off' THEN -b.percent WHEN 'ending' THEN b.ends
                         ELSE -b.began END, b.item_id, b.size
 LIMIT %(limit)s OFFSET %(offset)s;

-- name: categories
-- How many products a list in that order has, by category.
SELECT category, count(DISTINCT item_id) AS items FROM ({candidates}) x
 WHERE (%(order)s <> 'off' OR x.saved IS NOT NULL) AND (%(order)s <> 'ending' OR x.ends IS NOT NULL) GROUP BY category;

-- name: promotions
-- Promotions for much of a menu, and those without a price of a single product; of one name at several stores, the nearest or first store.
SELECT * FROM (
  SELECT DISTINCT ON (p.name, p.kind, p.value) p.name, p.kind, p.value, p.required_quantity, p.reward_quantity, p.ends_at, p.products, p.of_products,
         d.id AS store_id, d.name AS store, d.city, d.state, d.timezone, n.meters,
         count(*) OVER (PARTITION BY p.name, p.kind, p.value) AS stores
    FROM storefront_promotions p
    JOIN dispensaries d ON d.id = p.store_id
    LEFT JOIN unnest(%(stores)s::integer[], %(meters)s::integer[]) n(store_id, meters) ON n.store_id = p.store_id
   WHERE (%(stores)s::integer[] IS NULL OR n.store_id IS NOT NULL) AND (p.ends_at IS NULL OR p.ends_at > %(now)s)
     AND (p.products >= %(fewest)s AND p.products >= %(share)s * p.of_products OR p.kind IN ('bogo', 'bundle'))
   ORDER BY p.name, p.kind, p.value, n.meters, p.products DESC, p.store_id) x
 ORDER BY (kind IN ('bogo', 'bundle')), meters, products DESC, name LIMIT %(limit)s;
