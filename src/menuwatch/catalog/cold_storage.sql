-- Packed states beside those of the table (catalog/cold_storage.py).

-- name: definition
SELECT pg_get_viewdef(to_regclass(%(view)s));

-- name: create_unpacked
CREATE TEMPORARY TABLE unpacked_states (LIKE product_history, PRIMARY KEY (product_id, ended_at));

-- name: create_product_history
CREATE TEMPORARY VIEW product_history AS
SELECT s.* FROM product_history s
 UNION ALL
SELECT u.* FROM unpacked_states u
 WHERE NOT EXISTS (SELECT FROM product_history s WHERE s.product_id = u.product_id AND s.ended_at = u.ended_at);

-- name: has_archived_views
SELECT to_regclass('pg_temp.unpacked_states') IS NOT NULL;

-- name: load_archived
-- A state may stand in two files, where packing was cut off.
INSERT INTO unpacked_states
SELECT f.* FROM jsonb_populate_recordset(NULL::product_history, %(rows)s::jsonb) f
 WHERE (%(since)s::timestamptz IS NULL OR f.ended_at >= %(since)s)
   AND (%(stores)s::integer[] IS NULL OR f.dispensary_id = ANY (%(stores)s))
    ON CONFLICT DO NOTHING;

-- name: clear
DROP TABLE IF EXISTS pg_temp.unpacked_states CASCADE;
