-- Editing and removing stores.

-- piece: of_its_products
product_id IN (SELECT p.id FROM catalog_products p WHERE p.dispensary_id = %(id)s)

-- name: lock_store
SELECT id FROM dispensaries WHERE id = %(id)s FOR UPDATE;

-- name: contents
-- What belongs to a store, as numbers. A file that several payloads share counts once.
SELECT (SELECT count(*) FROM raw_crawl_payloads WHERE dispensary_id = %(id)s) AS payloads,
       (SELECT coalesce(sum(f.bytes), 0)::bigint FROM (SELECT max(bytes) AS bytes FROM raw_crawl_payloads WHERE dispensary_id = %(id)s GROUP BY path) f) AS payload_bytes,
       (SELECT count(*) FROM store_crawls WHERE dispensary_id = %(id)s) AS crawls,
       (SELECT count(*) FROM catalog_products WHERE dispensary_id = %(id)s) AS products,
       (SELECT count(*) FROM product_history WHERE dispensary_id = %(id)s) AS past_states,
       (SELECT count(*) FROM alert_rules WHERE dispensary_id = %(id)s) AS alert_rules,
       (SELECT count(*) FROM alert_rules WHERE {of_its_products}) AS product_alert_rules,
       (SELECT count(*) FROM task_live WHERE dispensary_id = %(id)s) AS unfinished_tasks,
       (SELECT count(*) FROM task_history WHERE dispensary_id = %(id)s) AS finished_tasks;

-- name: delete_payloads
DELETE FROM raw_crawl_payloads WHERE dispensary_id = %(id)s RETURNING path;

-- name: unreferenced
SELECT DISTINCT u.path FROM unnest(%(paths)s::text[]) u(path)
 WHERE NOT EXISTS (SELECT FROM raw_crawl_payloads p WHERE p.path = u.path);

-- name: delete_store
-- The catalog and its history go by trigger, crawls and alert rules by reference.
DELETE FROM dispensaries WHERE id = %(id)s;

-- name: delete_product_rules
DELETE FROM alert_rules WHERE {of_its_products};

-- name: set_menu_url
UPDATE dispensaries SET menu_url = %(menu_url)s, slug = %(slug)s,
       name = CASE WHEN name_raw = slug AND NOT details_by_person ? 'name' THEN %(name)s ELSE name END, name_raw = CASE WHEN name_raw = slug THEN %(slug)s ELSE name_raw END,
       last_error = CASE WHEN slug IS DISTINCT FROM %(slug)s THEN NULL ELSE last_error END, updated_at = now()
 WHERE id = %(id)s;
