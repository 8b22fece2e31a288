-- Products that search crawls found.

-- name: put
-- A product may have several addresses: what was read last is what there is.
WITH product AS (
  INSERT INTO crawl_products AS p (job_id, item_id, site, site_product_id, keyword, name, url, price_min, price_max, currency, weight_g, listed,
         score, images, seen_at)
  VALUES (%(job_id)s, %(item_id)s, %(site)s, %(site_product_id)s, %(keyword)s, %(name)s, %(url)s, %(price_min)s, %(price_max)s, %(currency)s,
         %(weight_g)s, %(listed)s, %(score)s, %(images)s, %(now)s)
      ON CONFLICT (job_id, site_product_id) DO UPDATE SET item_id = excluded.item_id, name = excluded.name, url = excluded.url,
         price_min = excluded.price_min, price_max = excluded.price_max, currency = excluded.currency, weight_g = excluded.weight_g,
         listed = excluded.listed, score = excluded.score, images = excluded.images, seen_at = excluded.seen_at
  RETURNING p.id
), gone AS (
  DELETE FROM crawl_variants v USING product p WHERE v.product_id = p.id AND v.variant_id <> ALL (%(variant_ids)s::text[])
)
INSERT INTO crawl_variants AS v (product_id, variant_id, place, sku, name, price, weight_g)
SELECT p.id, n.* FROM product p, unnest(%(variant_ids)s::text[], %(places)s::integer[], %(skus)s::text[], %(names)s::text[], %(prices)s::numeric[],
       %(weights)s::numeric[]) n(variant_id, place, sku, name, price, weight_g)
    ON CONFLICT (product_id, variant_id) DO UPDATE SET place = excluded.place, sku = excluded.sku, name = excluded.name,
       price = excluded.price, weight_g = excluded.weight_g;
