-- What lists and screens of an installation of millions need to answer at once.

-- What kind of failure a reason tells of: without what differs from case to case. Quoted texts and what stands in parentheses are `…`,
-- numbers, ids, times and ports are `#`; an HTTP status stays.
CREATE FUNCTION error_kind(reason text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT left(btrim(regexp_replace(regexp_replace(regexp_replace(left(reason, 600),
    '"[^"]*"|`[^`]*`|(?<!\w)''[^'']*''(?!\w)|\([^()]*\)', '…', 'g'),
    '(?<![\w-])(?<!HTTP )[\w-]*[0-9][\w-]*([.:,][\w-]*[0-9][\w-]*)*', '#', 'g'),
    '\s+', ' ', 'g')), 200)
$$;

-- The same as 12 hexadecimal digits: failures of one cause have equal ones.
CREATE FUNCTION error_cause(reason text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT left(md5(error_kind(reason)), 12) $$;

-- Written with what failed, so that a week of failures is grouped without reading their texts. Work that ended well pays nothing.
ALTER TABLE task_history ADD COLUMN cause text GENERATED ALWAYS AS (CASE WHEN status = 'failed' THEN error_cause(error_message) END) STORED;
CREATE INDEX task_history_cause ON task_history (cause, completed_at) INCLUDE (role, id, dispensary_id) WHERE status = 'failed';

-- As in 0002; a partition's columns are made as the table's are.
CREATE OR REPLACE FUNCTION ensure_task_history_partition(instant timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  day date := (instant AT TIME ZONE 'UTC')::date;
  part text := 'task_history_' || to_char(day, 'YYYYMMDD');
BEGIN
  IF to_regclass(part) IS NOT NULL THEN RETURN false; END IF;
  PERFORM pg_advisory_xact_lock(hashtext('task_history'));
  EXECUTE format('CREATE TABLE %I (LIKE task_history INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES INCLUDING GENERATED)', part);
  EXECUTE format('ALTER TABLE task_history ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', part,
                 day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
  RETURN true;
EXCEPTION WHEN duplicate_table THEN
  -- Somebody made it while this waited; to_regclass, asked again, would answer from the cache as before.
  RETURN false;
END $$;

-- The refreshes of one payload. Only they pay for it.
CREATE INDEX task_history_payload ON task_history ((payload ->> 'payload_id')) WHERE payload ->> 'payload_id' IS NOT NULL;

-- How fresh a store's menu is now, and when its interval is over: the key of lists, which does not move with the clock. The year
-- 1900 is for stores that never had a menu, 9000 for stores that are not crawled.
CREATE FUNCTION store_freshness(store dispensaries) RETURNS TABLE (status text, key timestamptz) LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN NOT store.crawl_enabled THEN 'off'
              WHEN store.platform_dispensary_id IS NULL THEN 'unresolved'
              WHEN store.last_crawled_at IS NULL THEN 'never'
              WHEN now() - store.last_crawled_at > 2 * store.crawl_interval_hours * interval '1 hour' THEN 'stale'
              WHEN now() - store.last_crawled_at > 1.25 * store.crawl_interval_hours * interval '1 hour' THEN 'late'
              ELSE 'fresh' END,
         CASE WHEN NOT store.crawl_enabled OR store.platform_dispensary_id IS NULL THEN '9000-01-01Z'::timestamptz
              WHEN store.last_crawled_at IS NULL THEN '1900-01-01Z'::timestamptz
              ELSE store.last_crawled_at + store.crawl_interval_hours * interval '1 hour' END
$$;
