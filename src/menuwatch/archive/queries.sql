-- Metadata of the archive: one row per raw answer.

-- name: insert_payload
INSERT INTO raw_crawl_payloads (task_id, dispensary_id, platform, status, reason, product_count, total_count, page_count, is_first,
       is_partial, fetched_at, path, bytes, raw_bytes, sha256, content_sha256, notes)
VALUES (%(task_id)s, %(dispensary_id)s, %(platform)s, %(status)s, %(reason)s, %(product_count)s, %(total_count)s, %(page_count)s,
       %(is_first)s, %(is_partial)s, %(fetched_at)s, %(path)s, %(bytes)s, %(raw_bytes)s, %(sha256)s, %(content_sha256)s, %(notes)s)
RETURNING id;

-- name: get_payload
SELECT * FROM raw_crawl_payloads WHERE id = %(id)s;

-- name: lock_payload
SELECT * FROM raw_crawl_payloads WHERE id = %(id)s FOR UPDATE;

-- name: latest_payload
SELECT * FROM raw_crawl_payloads WHERE dispensary_id = %(dispensary_id)s ORDER BY fetched_at DESC, id DESC LIMIT 1;

-- name: latest_applied
SELECT * FROM raw_crawl_payloads WHERE dispensary_id = %(dispensary_id)s AND applied_at IS NOT NULL
 ORDER BY fetched_at DESC, id DESC LIMIT 1;

-- name: payload_at
SELECT * FROM raw_crawl_payloads WHERE dispensary_id = %(dispensary_id)s AND fetched_at = %(fetched_at)s ORDER BY id LIMIT 1;

-- name: same_content
-- A payload of the store with the same bytes that was applied, else one that still can be.
SELECT * FROM raw_crawl_payloads
 WHERE dispensary_id = %(dispensary_id)s AND content_sha256 = %(content_sha256)s
   AND (applied_at IS NOT NULL
        OR status IN ('ok', 'quarantined') AND fetched_at > coalesce(%(crawled_at)s::timestamptz, '-infinity'))
 ORDER BY applied_at IS NULL, fetched_at DESC, id DESC LIMIT 1;

-- name: stored_alike
-- The first payload of the store with the same answers and the same fate: its file can serve for another. Locked, so that retention does
-- not remove the file meanwhile.
SELECT path, bytes, raw_bytes, sha256 FROM raw_crawl_payloads
 WHERE dispensary_id = %(dispensary_id)s AND content_sha256 = %(content_sha256)s AND status = %(status)s ORDER BY id LIMIT 1
   FOR KEY SHARE;

-- name: same_rejected
SELECT * FROM raw_crawl_payloads
 WHERE dispensary_id = %(dispensary_id)s AND content_sha256 = %(content_sha256)s AND status = 'rejected' ORDER BY id LIMIT 1;

-- name: instants
SELECT fetched_at FROM raw_crawl_payloads WHERE dispensary_id = %(dispensary_id)s AND fetched_at >= %(since)s;

-- name: products_applied
-- How many products the catalog took from a payload, as its crawl has it.
SELECT products FROM store_crawls WHERE payload_id = %(id)s;

-- name: mark_applied
UPDATE raw_crawl_payloads SET applied_at = now() WHERE id = %(id)s;

-- name: quarantine_payload
UPDATE raw_crawl_payloads SET status = 'quarantined', reason = %(reason)s WHERE id = %(id)s AND applied_at IS NULL;

-- name: release_payload
UPDATE raw_crawl_payloads SET status = 'ok', reason = NULL, released_at = now(), notes = notes || %(notes)s::jsonb
 WHERE id = %(id)s AND status = 'quarantined' RETURNING dispensary_id;

-- name: reject_payload
UPDATE raw_crawl_payloads SET status = 'rejected', notes = notes || %(notes)s::jsonb WHERE id = %(id)s AND status = 'quarantined';

-- name: waiting
-- How many of the store's menus wait in quarantine that were fetched after its last crawl, and since when.
SELECT count(*), min(fetched_at) FROM raw_crawl_payloads
 WHERE dispensary_id = %(dispensary_id)s AND status = 'quarantined' AND fetched_at > coalesce(%(since)s::timestamptz, '-infinity')
   AND id IS DISTINCT FROM %(but)s::bigint;

-- name: usual_counts
-- Sizes of the store's newest applied menus that were whole, none older than the last one a person released: after a release
-- the store's new size is the usual one.
SELECT product_count FROM raw_crawl_payloads p
 WHERE dispensary_id = %(dispensary_id)s AND applied_at IS NOT NULL AND NOT is_partial
   AND fetched_at >= coalesce((SELECT max(fetched_at) FROM raw_crawl_payloads r
                                WHERE r.dispensary_id = %(dispensary_id)s AND r.released_at IS NOT NULL AND r.applied_at IS NOT NULL), '-infinity')
 ORDER BY fetched_at DESC LIMIT 10;

-- name: known_paths
SELECT path, sha256 FROM raw_crawl_payloads WHERE path = ANY (%(paths)s);
