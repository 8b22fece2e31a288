-- The archive held against its rows.

-- name: payloads_after
SELECT id, dispensary_id, platform, status, fetched_at, path, bytes, raw_bytes, sha256, content_sha256
  FROM raw_crawl_payloads WHERE id > %(after)s ORDER BY id LIMIT %(limit)s;

-- name: count_payloads
SELECT count(*) AS n, coalesce(sum(bytes), 0)::bigint AS bytes FROM raw_crawl_payloads;

-- name: same_content_elsewhere
-- Payloads of the store with the same answers: from their files a lost one can be written again.
SELECT path, sha256, raw_bytes FROM raw_crawl_payloads
 WHERE dispensary_id = %(dispensary_id)s AND content_sha256 = %(content_sha256)s AND id <> %(id)s ORDER BY id LIMIT 5;

-- name: correct_size
UPDATE raw_crawl_payloads SET bytes = %(bytes)s WHERE id = %(id)s;
