-- Merging a store (`id`) into another row of the same shop (`into`).

-- piece: own_products
SELECT p.id FROM catalog_products p WHERE p.dispensary_id = %(id)s

-- piece: shared_products
-- Products that both stores have, by their ids at either: `old` is removed, `new` stays.
SELECT p.id AS old, o.id AS new FROM catalog_products p
  JOIN catalog_products o ON (o.dispensary_id, o.provider, o.provider_product_id) = (%(into)s, p.provider, p.provider_product_id)
 WHERE p.dispensary_id = %(id)s

-- name: keep_from_packing
-- As in rebuild.sql: no month is packed meanwhile.
SELECT pg_advisory_xact_lock_shared(hashtext('product_history are packed'));

-- name: months
-- Months in which states of the joined history may end.
SELECT DISTINCT date_trunc('month', fetched_at, 'UTC') AS month FROM raw_crawl_payloads
 WHERE dispensary_id IN (%(id)s, %(into)s) AND status = 'ok';

-- name: lock_stores
SELECT id FROM dispensaries WHERE id IN (%(id)s, %(into)s) ORDER BY id FOR UPDATE;

-- name: contents
-- What moves, as numbers, and what stands against it. Products without crawls come from an import.
WITH c AS MATERIALIZED (
  SELECT EXISTS (SELECT FROM store_crawls WHERE dispensary_id = %(id)s) OR EXISTS ({own_products}) AS moves,
         EXISTS (SELECT FROM store_crawls WHERE dispensary_id = %(into)s)
           OR EXISTS (SELECT FROM catalog_products WHERE dispensary_id = %(into)s) AS stays,
         (SELECT max(last_crawled_at) FROM dispensaries WHERE id IN (%(id)s, %(into)s)) AS last)
SELECT (SELECT count(*) FROM raw_crawl_payloads WHERE dispensary_id = %(id)s) AS payloads,
       (SELECT count(*) FROM store_crawls WHERE dispensary_id = %(id)s) AS crawls,
       (SELECT count(*) FROM ({own_products}) p WHERE p.id NOT IN (SELECT s.old FROM ({shared_products}) s)) AS products,
       (SELECT count(*) FROM ({shared_products}) s) AS shared_products,
       (SELECT count(*) FROM product_history WHERE dispensary_id = %(id)s) AS past_states,
       (SELECT count(*) FROM alert_rules WHERE dispensary_id = %(id)s OR product_id IN ({own_products})) AS alert_rules,
       (SELECT count(*) FROM task_history WHERE dispensary_id = %(id)s) AS finished_tasks,
       (SELECT count(*) FROM task_live WHERE dispensary_id = %(id)s) AS unfinished_tasks,
       CASE WHEN c.moves AND c.stays
            THEN (SELECT count(*) FROM raw_crawl_payloads
                   WHERE dispensary_id IN (%(id)s, %(into)s) AND status = 'ok' AND fetched_at <= c.last) ELSE 0 END AS rebuilt_from,
       c.moves, c.stays,
       (SELECT count(*) FROM raw_crawl_payloads p WHERE p.dispensary_id = %(id)s
           AND EXISTS (SELECT FROM raw_crawl_payloads o WHERE o.dispensary_id = %(into)s AND o.fetched_at = p.fetched_at)) AS shared_instants,
       (SELECT count(*) FROM store_crawls WHERE dispensary_id IN (%(id)s, %(into)s) AND payload_id IS NULL) AS without_payload
  FROM c;

-- name: mark_switches
-- Where the joined history passes from one row to the other, the menu may differ at once in all its products. The operator who
-- merges the two vouches that it is one shop, so these menus count as released, in this rebuild and in later ones.
UPDATE raw_crawl_payloads p SET released_at = now()
  FROM (SELECT id, dispensary_id, lag(dispensary_id) OVER (ORDER BY fetched_at, id) AS before FROM raw_crawl_payloads
         WHERE dispensary_id IN (%(id)s, %(into)s) AND status = 'ok') o
 WHERE p.id = o.id AND o.before <> o.dispensary_id AND p.released_at IS NULL;

-- name: move_payloads
UPDATE raw_crawl_payloads p SET dispensary_id = %(into)s,
       is_first = p.is_first AND NOT EXISTS (SELECT FROM raw_crawl_payloads o WHERE o.dispensary_id = %(into)s AND o.is_first)
 WHERE p.dispensary_id = %(id)s;

-- name: move_rules
UPDATE alert_rules SET dispensary_id = %(into)s WHERE dispensary_id = %(id)s;

-- name: move_product_rules
UPDATE alert_rules r SET product_id = s.new FROM ({shared_products}) s WHERE r.product_id = s.old;

-- name: move_shared_matches
UPDATE alert_matches m SET product_id = s.new, dispensary_id = %(into)s FROM ({shared_products}) s
 WHERE m.product_id = s.old AND NOT EXISTS (SELECT FROM alert_matches o WHERE o.rule_id = m.rule_id AND o.product_id = s.new);

-- name: reindex_products
-- An offer is written again only when its product has changed; these change their store.
UPDATE storefront_offers SET source_version = 0 WHERE product_id IN ({own_products});

-- name: match_again
UPDATE match_stores SET rules_version = 0 WHERE dispensary_id = %(into)s;

-- name: move_links
-- Links of the shared products go to the row that stays, if it has none; the others follow their products when they are matched again.
UPDATE product_matches m SET product_id = s.new, dispensary_id = %(into)s FROM ({shared_products}) s
 WHERE m.product_id = s.old AND NOT EXISTS (SELECT FROM product_matches o WHERE o.product_id = s.new);

-- name: move_history
UPDATE product_history h SET dispensary_id = %(into)s
 WHERE h.dispensary_id = %(id)s AND h.product_id NOT IN (SELECT s.old FROM ({shared_products}) s);

-- name: move_products
UPDATE catalog_products p SET dispensary_id = %(into)s
 WHERE p.dispensary_id = %(id)s AND p.id NOT IN (SELECT s.old FROM ({shared_products}) s);

-- name: move_matches
-- Those left belong to products that moved.
UPDATE alert_matches m SET dispensary_id = %(into)s
 WHERE m.dispensary_id = %(id)s AND EXISTS (SELECT FROM catalog_products p WHERE p.id = m.product_id AND p.dispensary_id = %(into)s);

-- name: move_crawls
-- Inserted, not updated: readers of the feed get them again under their new store.
WITH moved AS (DELETE FROM store_crawls WHERE dispensary_id = %(id)s RETURNING *)
INSERT INTO store_crawls (dispensary_id, crawled_at, payload_id, products, new_products, changed, unchanged, returned, missing,
       out_of_stock, price_changes, stock_changes, warnings)
SELECT %(into)s, crawled_at, payload_id, products, new_products, changed, unchanged, returned, missing, out_of_stock, price_changes,
       stock_changes, warnings FROM moved;

-- name: move_locations
UPDATE dutchie_discovery_locations SET dispensary_id = %(into)s WHERE dispensary_id = %(id)s;

-- name: move_tasks
UPDATE task_history SET dispensary_id = %(into)s WHERE dispensary_id = %(id)s;

-- name: move_events
UPDATE alert_events SET dispensary_id = %(into)s WHERE dispensary_id = %(id)s;

-- name: move_watches
UPDATE price_watches SET store_id = %(into)s WHERE store_id = %(id)s;

-- name: join_crawl_times
UPDATE dispensaries t SET
       first_crawled_at = least(t.first_crawled_at, s.first_crawled_at),
       last_crawled_at = greatest(t.last_crawled_at, s.last_crawled_at),
       last_payload_id = CASE WHEN l.crawl THEN s.last_payload_id ELSE t.last_payload_id END,
       product_count = CASE WHEN l.crawl THEN s.product_count ELSE t.product_count END,
       last_fetch_at = greatest(t.last_fetch_at, s.last_fetch_at),
       last_error = CASE WHEN l.attempt THEN s.last_error ELSE t.last_error END,
       last_attempt_at = greatest(t.last_attempt_at, s.last_attempt_at), updated_at = now()
  FROM dispensaries s, dispensaries o, LATERAL (
    SELECT s.last_crawled_at > coalesce(o.last_crawled_at, '-infinity') AS crawl,
           s.last_attempt_at > coalesce(o.last_attempt_at, '-infinity') AS attempt) l
 WHERE t.id = %(into)s AND o.id = t.id AND s.id = %(id)s;

-- name: delete_store
-- The shared products and their history go by trigger, crawls by reference.
DELETE FROM dispensaries WHERE id = %(id)s;

-- name: take_identity
-- A store that was added by URL alone gets what the other one knew.
UPDATE dispensaries SET platform_dispensary_id = %(platform_dispensary_id)s, slug = %(slug)s,
       name = CASE WHEN name_raw = dispensaries.slug AND NOT details_by_person ? 'name' THEN %(name)s ELSE name END, updated_at = now()
 WHERE id = %(into)s AND platform_dispensary_id IS NULL;

-- name: pending
SELECT id, platform FROM raw_crawl_payloads
 WHERE dispensary_id = %(id)s AND status = 'ok' AND applied_at IS NULL
   AND fetched_at > coalesce((SELECT last_crawled_at FROM dispensaries WHERE id = %(id)s), '-infinity')
 ORDER BY fetched_at, id;
